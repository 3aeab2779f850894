import { dirname } from 'node:path';
import type { ApprovalRequest } from '@whoa/core/approval';
import { getDefaultSqlitePath } from '@whoa/tasks/internal';
import { compiledFolder } from '../compiled.ts';
import { configFolder } from '../config/config-folder.ts';
import { realPathOf } from './path-pattern.ts';

/** Calls on these paths are asked about despite rules and `--yes`: they could change what runs later, or read your keys. */
export interface ProtectedPaths {
  /** Our own folders: configuration, tasks and compiled code. */
  readonly folders: readonly string[];
}

const KEYS =
  /(?:^|[\s/'"=:])(?:\.env(?!\.(?:example|sample|template)\b)(?:\.[\w.-]+)?|\.netrc|\.npmrc|\.pypirc|\.git-credentials|\.pgpass|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|[^\s/'"]*\.(?:pem|p12|pfx|key)|\.(?:ssh|gnupg)(?:\/[^\s'"]*)?|\.aws\/credentials|\.kube\/config|\.docker\/config\.json)(?=$|[\s'";|&)<>])/i;
const RUN_LATER = /(?:^|[\s/'"=:])(?:\.git\/(?:hooks(?:\/|$|[\s'"])|config\b)|\.git$)|core\.hooksPath/i;

export function protectedPaths(env: NodeJS.ProcessEnv = process.env): ProtectedPaths {
  const folders = [configFolder(env), dirname(getDefaultSqlitePath(env)), compiledFolder(env)];
  return { folders: folders.filter((folder) => folder !== undefined).map((folder) => realPathOf(folder, '/')) };
}

/** Returns why a call must be asked about even if it is allowed, or `undefined`. `path` must be a real path. */
export function whyProtected(
  { effects, input }: ApprovalRequest,
  path: string | undefined,
  { folders }: ProtectedPaths,
): string | undefined {
  const { command } = (input ?? {}) as { readonly command?: unknown };
  const text = typeof command === 'string' ? command : path;
  if (text === undefined) return undefined;
  if (KEYS.test(text)) return 'it accesses a file that may contain keys';
  if (effects === 'read') return undefined;
  if (RUN_LATER.test(text)) return 'it may change what git runs';
  const isOurs = folders.some((folder) =>
    text === path ? `${text}/`.startsWith(`${folder}/`) : text.includes(folder),
  );
  return isOurs ? 'it accesses the folders of whoa itself' : undefined;
}
