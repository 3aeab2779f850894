import { spawnSync } from 'node:child_process';
import { existsSync, realpathSync, statSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { resolveRealPath } from '../approvals/path-pattern.ts';
import { UsageError } from '../command.ts';
import type { ConnectionContext } from '../system.ts';
import type { WhoaConfig } from './config.ts';
import { configFolder } from './config-folder.ts';

/** The time limit for finding a syntax error again. */
const CHECK_MS = 5_000;
const NAMES = ['whoa.config.ts', 'whoa.config.mjs', 'whoa.config.js'];

/**
 * Loads the configuration. It is code, so load it only from `--config` or from the user's configuration folder: never from the
 * folder that the agent works in.
 */
export async function loadConfig(path: string | undefined, { env, cwd }: ConnectionContext): Promise<WhoaConfig> {
  const file = path === undefined ? findConfig(env) : resolve(cwd(), path);
  if (file === undefined) return {};
  if (path === undefined) refuseBelow(cwd(), file, env);
  if (!existsSync(file)) throw new UsageError(`--config: ${file} does not exist`);
  if (!statSync(file).isFile()) throw new UsageError(`--config: ${file} is not a file`);
  resolveOurselves();
  const module = await importConfig(file);
  const config = module.default ?? module.config;
  if (typeof config !== 'object' || config === null) {
    throw new UsageError(`${file} does not export a configuration; write 'export default defineConfig({ … })'`);
  }
  // Load this only for a configuration: it takes longer than the rest of a command's start.
  const { checkConfig } = await import('./check.ts');
  checkConfig(config, file);
  return config;
}

/** Returns the name of a configuration in the current folder, which is not loaded without `--config`. */
export function findUnreadConfig({ cwd }: Pick<ConnectionContext, 'cwd'>): string | undefined {
  return NAMES.find((name) => existsSync(join(cwd(), name)));
}

/** An agent in this folder could write the file that the next command runs. A home folder has all files of its user. */
function refuseBelow(cwd: string, file: string, { HOME = homedir() }: NodeJS.ProcessEnv): void {
  const folder = `${resolveRealPath(cwd, '/')}/`;
  if (!resolveRealPath(file, '/').startsWith(folder) || `${resolveRealPath(HOME, '/')}/`.startsWith(folder)) return;
  throw new UsageError(
    `${file} is below this folder, so it is not loaded; start whoa in another folder, or use --config`,
  );
}

async function importConfig(file: string): Promise<{ default?: WhoaConfig; config?: WhoaConfig }> {
  try {
    return (await import(pathToFileURL(file).href)) as { default?: WhoaConfig; config?: WhoaConfig };
  } catch (error) {
    const message = (error as Error).message ?? String(error);
    throw new UsageError(
      `${file} cannot be loaded: ${message}${describePlace(error, file)}${adviceOn(error)}`,
      'CONFIG',
    );
  }
}

/** What to install, if a package is missing. */
function adviceOn(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  const [, name] = /^Cannot find package '([^']+)'/.exec(String(message)) ?? [];
  if (code !== 'ERR_MODULE_NOT_FOUND' || name === undefined) return '';
  const command = /^(?:@whoa\/|whoa$)/.test(name) ? 'in the clone, npm run pack -- FOLDER' : 'npm install';
  return `; install it where whoa is installed, or next to the file: ${command} ${name}`;
}

/** Where a syntax error is, if that can be found out. */
function describePlace(error: unknown, file: string): string {
  if (!(error instanceof SyntaxError)) return '';
  // The stack begins with the place for TypeScript. For JavaScript, only Node itself prints it.
  const output = /^\S+:\d+\n/.test(error.stack ?? '') ? error.stack! : checkSyntax(file);
  const [, path = '', line] = /^(\S+):(\d+)\n/.exec(output) ?? [];
  if (line === undefined) return '';
  return `, in line ${line}${path.endsWith(basename(file)) ? '' : ` of ${path}`}`;
}

function checkSyntax(file: string): string {
  return spawnSync(process.execPath, ['--check', file], { encoding: 'utf8', timeout: CHECK_MS, env: {} }).stderr;
}

/** Returns the configuration file in the user's configuration folder, if there is one. */
export function findConfig(env: NodeJS.ProcessEnv): string | undefined {
  const folder = configFolder(env);
  const file = NAMES.map((name) => join(folder, name)).find((one) => existsSync(one));
  if (file !== undefined && process.platform !== 'win32') for (const path of upwards(file)) checkTrusted(path, file);
  return file;
}

/** Throws if another user can change the file or a folder above it: that user could make us run their code. */
function checkTrusted(path: string, file: string): void {
  const { mode, uid } = statSync(path);
  if (uid !== 0 && uid !== process.getuid?.()) {
    throw new UsageError(`${path} belongs to another user, so ${file} is not loaded; change its owner`);
  }
  // In a folder with the sticky bit, such as /tmp, users cannot move files of other users.
  const isOpen = (mode & 0o002) !== 0 && (path === realpathSync(file) || (mode & 0o1000) === 0);
  if (isOpen) throw new UsageError(`all users can write to ${path}, so ${file} is not loaded; run 'chmod o-w ${path}'`);
}

/** Returns the real path and every folder above it. */
function upwards(path: string): string[] {
  const paths = [realpathSync(path)];
  for (let at = paths[0]!; dirname(at) !== at; at = dirname(at)) paths.push(dirname(at));
  return paths;
}

let isResolvingOurselves = false;

/** The folder of a configuration has no node_modules. Resolve its imports of our packages relative to this file instead. */
function resolveOurselves(): void {
  if (isResolvingOurselves) return;
  isResolvingOurselves = true;
  registerHooks({
    resolve(specifier, context, next) {
      try {
        return next(specifier, context);
      } catch (error) {
        if (!/^(whoa$|@whoa\/)/.test(specifier)) throw error;
        return next(specifier, { ...context, parentURL: import.meta.url });
      }
    },
  });
}
