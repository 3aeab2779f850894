import { dirname, relative } from 'node:path';
import type { ApprovalRequest } from '@whoa/core/approval';
import { getDefaultSqlitePath } from '@whoa/tasks/internal';
import { runsLater } from '@whoa/tools';
import { compiledFolder } from '../compiled.ts';
import { configFolder } from '../config/config-folder.ts';
import { resolveRealPath } from './path-pattern.ts';

const KEYS =
  /(?:^|[\s/'"=:])(?:\.env(?!\.(?:example|sample|template)\b)(?:\.[\w.-]+)?|\.netrc|\.npmrc|\.pypirc|\.git-credentials|\.pgpass|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|[^\s/'"]*\.(?:pem|p12|pfx|key)|\.(?:ssh|gnupg)(?:\/[^\s'"]*)?|\.aws\/credentials|\.kube\/config|\.docker\/config\.json)(?=$|[\s'";|&)<>])/i;
const EXPANSION = /[*?[{$`]/;
/** A name that starts with a dot and that a shell completes. */
const HIDDEN_PATTERN = /(?:^|[\s/'"=:])\.[^\s/'"]*[*?[{$`]/;
const GIT =
  /(?:^|[\s/'"=:])(?:\.git\/(?:hooks|config|commondir|modules|worktrees|info|objects\/info)\b|\.(?:husky|githooks)\b)|\s['"]?\.git['"]?$|core\.hooksPath/i;

/** Returns our own folders: configuration, tasks and compiled code. */
export function findOwnFolders(env: NodeJS.ProcessEnv): readonly string[] {
  const folders = [configFolder(env), dirname(getDefaultSqlitePath(env)), compiledFolder(env)];
  return folders.filter((folder) => folder !== undefined).map((folder) => resolveRealPath(folder, '/'));
}

/**
 * Returns why a call with this real path, or that mentions these texts, needs approval despite rules and `--yes`: it could
 * change what runs later, or read your keys.
 */
export function findProtectionReason(
  { effects }: Pick<ApprovalRequest, 'effects'>,
  { path, mentions }: { readonly path: string | undefined; readonly mentions: readonly string[] },
  { ownFolders, cwd }: { readonly ownFolders: readonly string[]; readonly cwd: string },
): string | undefined {
  const texts = path === undefined ? mentions : [path, ...mentions];
  if (texts.some((text) => KEYS.test(text) || HIDDEN_PATTERN.test(text)))
    return 'it accesses a file that may contain keys';
  if (effects === 'read') return undefined;
  if (texts.some((text) => GIT.test(text)) || path?.endsWith('/.git')) return 'it may change what git runs';
  if (path !== undefined && runsLater(relative(resolveRealPath(cwd, '/'), path)))
    return 'it may change a file that runs programs later';
  const isOurs = texts.some((text) => ownFolders.some((folder) => isBelow(text, folder)));
  return isOurs ? 'it accesses the folders of whoa itself' : undefined;
}

/** Whether a path is a folder or below it. One with an expansion counts if its start does. */
function isBelow(path: string, folder: string): boolean {
  const [start = ''] = path.split(EXPANSION);
  const mayBe = start.endsWith('/')
    ? start === `${dirname(folder)}/`
    : start.startsWith('/') && folder.startsWith(start);
  return `${path}/`.startsWith(`${folder}/`) || (start !== path && mayBe);
}
