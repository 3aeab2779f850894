import { dirname } from 'node:path';
import type { ApprovalRequest } from '@whoa/core/approval';
import { getDefaultSqlitePath } from '@whoa/tasks/internal';
import { compiledFolder } from '../compiled.ts';
import { configFolder } from '../config/config-folder.ts';
import { realPathOf } from './path-pattern.ts';

/** What is asked about whatever rules and `--yes` say: who changes it changes what runs later, who reads it has your keys. */
export interface ProtectedPaths {
  /** Folders of this command: its configuration, its tasks, its compiled code. */
  readonly folders: readonly string[];
}

const KEYS =
  /(?:^|[\s/'"=:])(?:\.env(?!\.(?:example|sample|template)\b)(?:\.[\w.-]+)?|\.netrc|\.npmrc|\.pypirc|\.git-credentials|\.pgpass|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|[^\s/'"]*\.(?:pem|p12|pfx|key)|\.(?:ssh|gnupg)(?:\/[^\s'"]*)?|\.aws\/credentials|\.kube\/config|\.docker\/config\.json)(?=$|[\s'";|&)<>])/i;
const RUN_LATER = /(?:^|[\s/'"=:])(?:\.git\/(?:hooks(?:\/|$|[\s'"])|config\b)|\.git$)|core\.hooksPath/i;

export function protectedPaths(env: NodeJS.ProcessEnv = process.env): ProtectedPaths {
  const folders = [configFolder(env), dirname(getDefaultSqlitePath(env)), compiledFolder(env)];
  return { folders: folders.filter((folder) => folder !== undefined).map((folder) => realPathOf(folder, '/')) };
}

/** Why a call is asked about even if it is allowed; nothing if it need not be. `path` has every link resolved. */
export function whyProtected(
  { effects, input }: ApprovalRequest,
  path: string | undefined,
  { folders }: ProtectedPaths,
): string | undefined {
  const { command } = (input ?? {}) as { readonly command?: unknown };
  const text = typeof command === 'string' ? command : path;
  if (text === undefined) return undefined;
  if (KEYS.test(text)) return 'it is about a file that may hold keys';
  if (effects === 'read') return undefined;
  if (RUN_LATER.test(text)) return 'it may change what git runs';
  const isOurs = folders.some((folder) =>
    text === path ? `${text}/`.startsWith(`${folder}/`) : text.includes(folder),
  );
  return isOurs ? 'it is about the folders of whoa itself' : undefined;
}
