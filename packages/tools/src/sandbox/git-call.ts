import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Containment } from '../process/containment/containment.ts';
import { findProgram, pathOutside } from '../process/programs.ts';
import { askGit, type GitSetting, readGitSettings, userEnvironment } from './git-settings.ts';
import { findStats, runsLater } from './run-later.ts';

const SUBCOMMANDS = 'add commit checkout switch restore reset stash branch tag merge rm mv'.split(' ');
/** Options that start programs, write to any file or enter submodules. Git accepts the beginning of an option. */
const REFUSED = /^(?:--(?:exe|out|rec|gpg|tem)|-S)/;
/** A word that every shell leaves as it is, without its quotes. */
const PART = String.raw`@\{[\w./-]*\}|[\p{L}\p{N}_@%+=:,./^-]|'[^']*'|"[^"$\x60\\]*"`;
// A tilde is a home folder at the start, and after = and :.
const WORD = `(?:${PART})(?:${PART}|(?<=[\\w^~}])~)*`;
const PLAIN = new RegExp(`^git(?:[ \\t]+${WORD})+$`, 'u');

/**
 * Reads a command that is plainly git with one of a few subcommands, and returns its arguments. Returns `undefined` for all
 * others, which a shell has to run.
 */
export function readGitCommand(command: string): readonly string[] | undefined {
  if (!PLAIN.test(command.trim())) return undefined;
  const words = [...command.trim().matchAll(new RegExp(WORD, 'gu'))].slice(1);
  const args = words.map(([word]) => word.replace(/'([^']*)'|"([^"]*)"/g, '$1$2'));
  const [subcommand = ''] = args;
  if (!SUBCOMMANDS.includes(subcommand) || args.some((arg) => REFUSED.test(arg))) return undefined;
  // Commands cannot change these files, so git must not do it for them.
  return subcommand === 'mv' && args.some(runsLater) ? undefined : args;
}

/** Finds the git that runs for a command, by its full path. Returns `undefined` for a command that a shell has to run. */
export function findGit(command: string, { sandbox, workspace }: Containment): string | undefined {
  if (sandbox !== 'workspace' || workspace === undefined || readGitCommand(command) === undefined) return undefined;
  if (!findStats(join(workspace, '.git/config'))?.isFile()) return undefined;
  try {
    return findProgram('git', { workspace, path: process.env['PATH'] });
  } catch {
    return undefined;
  }
}

/** A command that runs as git itself and may write to `.git`. */
export interface GitCall {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** Arguments of bubblewrap. */
  readonly mounts: readonly string[];
  /** Call it when git has ended. Removes what makes git run programs, and returns the names. */
  settle(): readonly string[];
}

/** The parts of `.git` that git runs or follows. No subcommand above has to write to them. */
const PARTS = ['config.worktree', 'commondir', 'hooks', 'info', 'modules', 'worktrees', 'objects/info'];
const APPEARING = [...PARTS.slice(0, -1), 'objects/info/alternates'];
const IGNORED = '/run/whoa/gitignore';
let calls = 0;

/** Prepares a command that git itself can run. Returns `undefined` for all others. */
export async function openGitCall(command: string, containment: Containment): Promise<GitCall | undefined> {
  const program = findGit(command, containment);
  if (program === undefined) return undefined;
  const workspace = containment.workspace!;
  const git = join(workspace, '.git');
  const config = join(git, 'config');
  const before = readFileSync(config);
  const missing = APPEARING.filter((part) => !existsSync(join(git, part)));
  const settings = join(containment.folder(), `git-settings-${++calls}`);
  writeFileSync(settings, (await readGitSettings(workspace)).filter(isHarmless).map(render).join(''), { mode: 0o600 });
  const parts = PARTS.map((part) => join(git, part)).filter((path) => existsSync(path));
  const user = userEnvironment();
  const ignored = await findIgnored(workspace, user);
  return {
    argv: [program, ...readGitCommand(command)!],
    env: { ...configEnvironment(workspace), ...(await readIdentity(workspace, user)), GIT_DIR: git },
    mounts: ['--bind', git, git, '--ro-bind', settings, config, '--ro-bind-try', ignored, IGNORED].concat(
      parts.flatMap((path) => ['--ro-bind', path, path]),
    ),
    settle() {
      rmSync(settings, { force: true });
      const appeared = missing.filter((part) => existsSync(join(git, part)));
      for (const part of appeared) rmSync(join(git, part), { recursive: true, force: true });
      const isChanged = !readFileSync(config).equals(before);
      if (isChanged) writeFileSync(config, before);
      return [...appeared, ...(isChanged ? ['config'] : [])].map((part) => `.git/${part}`);
    },
  };
}

/** Settings that start nothing. A required filter without its programs fails, and git does not add what it should have filtered. */
const HARMLESS =
  /^(?:core\.(?:repositoryformatversion|filemode|bare|ignorecase|precomposeunicode|symlinks|logallrefupdates|autocrlf|eol|safecrlf|sparsecheckout|sparsecheckoutcone|quotepath)|extensions\.(?!worktreeconfig).*|(?:user|author|committer)\.(?:name|email)|branch\..*\.(?:remote|merge)|remote\..*\.(?:url|fetch)|submodule\..*\.(?:url|active)|merge\.(?:ff|conflictstyle)|(?:i18n|index)\..*|filter\..*\.required)$/;
const isHarmless = ({ key }: GitSetting): boolean => HARMLESS.test(key);

function render({ key, value }: GitSetting): string {
  const [first, last] = [key.indexOf('.'), key.lastIndexOf('.')];
  const section = first === last ? '' : ` ${quote(key.slice(first + 1, last))}`;
  return `[${key.slice(0, first)}${section}]\n\t${key.slice(last + 1)} = ${quote(value)}\n`;
}

const quote = (text: string): string => `"${text.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`;

/** Turns off everything that starts programs, also where git has a default for it. */
function configEnvironment(workspace: string): Record<string, string> {
  const settings = Object.entries({
    'core.hooksPath': '/dev/null',
    'core.fsmonitor': 'false',
    'core.excludesFile': IGNORED,
    'diff.ignoreSubmodules': 'dirty',
    'gc.auto': '0',
    'maintenance.auto': 'false',
    'protocol.allow': 'never',
    'safe.directory': workspace,
  });
  const env: Record<string, string> = {
    // Git starts programs of these names too, such as merge strategies.
    PATH: pathOutside(workspace, process.env['PATH']),
    GIT_WORK_TREE: workspace,
    GIT_EDITOR: ':',
    GIT_MERGE_AUTOEDIT: 'no',
    GIT_CONFIG_COUNT: `${settings.length}`,
  };
  for (const [index, [key, value]] of settings.entries()) {
    env[`GIT_CONFIG_KEY_${index}`] = key;
    env[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return env;
}

async function readIdentity(workspace: string, user: NodeJS.ProcessEnv): Promise<Record<string, string>> {
  const identity: Record<string, string> = {};
  for (const who of ['GIT_AUTHOR', 'GIT_COMMITTER']) {
    const [, name, email] =
      /^(.*) <(.*)> \d+ [+-]\d+$/m.exec(await askGit(workspace, ['var', `${who}_IDENT`], user)) ?? [];
    if (name !== undefined && email !== undefined)
      Object.assign(identity, { [`${who}_NAME`]: name, [`${who}_EMAIL`]: email });
  }
  return identity;
}

/** The file with what the user ignores in every repository. */
async function findIgnored(workspace: string, user: NodeJS.ProcessEnv): Promise<string> {
  const named = await askGit(workspace, ['config', '--type=path', '--get', 'core.excludesFile'], user);
  return named.trim() || join(user['XDG_CONFIG_HOME'] ?? join(homedir(), '.config'), 'git/ignore');
}
