import { type Dirent, lstatSync, readdirSync, type Stats } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { EXECUTES, readGitSettings } from './git-settings.ts';

/** Shells, editors, agents and version control run these, or what they name, without being asked to. */
export const UNASKED: readonly string[] = `
  .git .hg .jj .gitconfig .gitmodules .husky .githooks .lefthook .lefthook.yml lefthook.yml .pre-commit-config.yaml
  .overcommit.yml .vscode .idea .run .zed .fleet .vs .helix .settings .externalToolBuilders .kateproject .devcontainer
  .devcontainer.json .exrc .vimrc .nvimrc .nvim.lua .dir-locals.el .claude .claude.json .codex .agents .cursor .gemini .qwen
  .opencode opencode.json .crush.json .continue .windsurf .kiro .roo .amazonq .aider.conf.yml .mcp.json .bashrc .bash_profile
  .bash_login .bash_logout .bash_aliases .profile .inputrc .kshrc .zshrc .zshenv .zprofile .zlogin .zlogout .envrc .direnvrc
  .mise .mise.toml .mise.local.toml mise.toml mise.local.toml .tool-versions rust-toolchain rust-toolchain.toml .rvmrc .autoenv
  .npmrc .yarnrc .yarnrc.yml .yarn/releases .yarn/plugins .pnpmfile.cjs bunfig.toml .cargo/config .cargo/config.toml .mvn
  .ripgreprc .gdbinit .lldbinit .Rprofile .irbrc .pryrc`
  .trim()
  .split(/\s+/);
const RUNS_UNASKED = new RegExp(`(?:^|/)(?:${UNASKED.join('|').replaceAll('.', '\\.')})(?:/|$)`, 'i');

/** Users, their editors and other agents use these as part of their work, and commands may change them. */
const WHEN_ASKED = [
  String.raw`package\.json pnpm-workspace\.yaml deno\.jsonc? (?:GNU)?[Mm]akefile [Jj]ustfile Taskfile\.ya?ml Rakefile Gemfile`,
  String.raw`build\.rs build\.zig mix\.exs Package\.swift setup\.py setup\.cfg conftest\.py pyproject\.toml tox\.ini mypy\.ini`,
  String.raw`[^/]*\.gradle(?:\.kts)? gradle[^/]*\.properties gradlew pom\.xml mvnw build\.sbt [^/]*\.(?:cs|fs|vb)proj`,
  String.raw`Directory\.Build\.(?:props|targets) CMakeLists\.txt CMakePresets\.json [^/]*\.nix Dockerfile (?:docker-)?compose\.ya?ml`,
  String.raw`Vagrantfile Jenkinsfile \.gitlab-ci\.yml \.travis\.yml [\w-]+-pipelines\.yml \.circleci/.* \.github/(?:workflows|actions)/.*`,
  String.raw`tsconfig\.json [^/]*\.(?:code-workspace|sublime-project) \.[\w-]+rc(?:\.\w+)? [^/]*\.config\.[cm]?[jt]s \.env(?:\..+)?`,
  String.raw`AGENTS\.md CLAUDE\.md GEMINI\.md \.cursorrules`,
];
const RUNS_WHEN_ASKED = new RegExp(`(?:^|/)(?:${WHEN_ASKED.join(' ').replaceAll(' ', '|')})$`);

/** The parts of `.git` with which commands can make git run a program. */
const GIT_PARTS = ['config', 'config.worktree', 'commondir', 'hooks', 'objects/info/alternates'];
const MAX_FOLDERS = 50_000;

/**
 * Whether shells, editors, agents or git use a path later to run programs, without being asked to.
 *
 * @returns Whether one of its names is on the list. The path is relative to the folder that an agent works in.
 */
export function runsLater(path: string): boolean {
  return RUNS_UNASKED.test(path);
}

/**
 * Finds what was changed in a folder and runs programs later: files that {@link runsLater} knows, scripts of the project, and
 * repositories, with the settings that start programs.
 *
 * @returns One line for each, relative to the folder. `since` is in milliseconds since 1970.
 */
export async function findRunLater(folder: string, since: number): Promise<readonly string[]> {
  const isNew = (path: string): boolean => (findStats(path)?.ctimeMs ?? 0) > since;
  const lines: string[] = [];
  const limits = { maxFolders: MAX_FOLDERS, skip: ['.git'] };
  const isComplete = await walkFolders(folder, limits, async (here, entries) => {
    const show = (path: string): string => relative(folder, path) || '.';
    // Programs that know a name in it can still use it.
    if (entries === undefined && isNew(here)) lines.push(`${show(here)}  cannot be listed`);
    for (const git of findRepositories(here, entries)) {
      if (repositoryFiles(git).some(isNew)) lines.push(await describeRepository(here, show(git)));
    }
    if (show(here).split('/').includes('node_modules')) return;
    for (const entry of entries ?? []) {
      const path = join(here, entry.name);
      const isNamed = runsLater(show(path)) || RUNS_WHEN_ASKED.test(show(path));
      if (isNamed && entry.name !== '.git' && !entry.isDirectory() && isNew(path)) lines.push(show(path));
    }
  });
  return isComplete ? lines : [...lines, `more than ${MAX_FOLDERS} folders, of which some were not checked`];
}

/** Visits folders, those at the top first, without entries if they cannot be listed. Returns whether it visited all of them. */
export async function walkFolders(
  root: string,
  { maxFolders, skip }: { readonly maxFolders: number; readonly skip: readonly string[] },
  visit: (folder: string, entries: readonly Dirent[] | undefined) => Promise<void> | void,
): Promise<boolean> {
  const folders = [root];
  for (const folder of folders) {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => undefined);
    await visit(folder, entries);
    const below = (entries ?? []).filter((entry) => entry.isDirectory() && !skip.includes(entry.name));
    if (folders.length + below.length > maxFolders) return false;
    folders.push(...below.map(({ name }) => join(folder, name)));
  }
  return true;
}

/** The `.git` in a folder, and the folder itself if git takes it for one, as it does with a bare repository. */
export function findRepositories(folder: string, entries: readonly Dirent[] = []): string[] {
  const names = new Set(entries.map(({ name }) => name));
  const isBare = names.has('HEAD') && (names.has('commondir') || (names.has('objects') && names.has('refs')));
  return [...(names.has('.git') ? [join(folder, '.git')] : []), ...(isBare ? [folder] : [])];
}

/** Undefined also where a file takes the place of a folder on the way, for which `lstatSync` throws. */
export function findStats(path: string): Stats | undefined {
  return attempt(() => lstatSync(path));
}

function repositoryFiles(git: string): string[] {
  if (findStats(git)?.isDirectory() !== true) return [git];
  const hooks = attempt(() => readdirSync(join(git, 'hooks'))) ?? [];
  return [...GIT_PARTS, ...hooks.map((name) => join('hooks', name))].map((part) => join(git, part));
}

function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

async function describeRepository(folder: string, shown: string): Promise<string> {
  const settings = (await readGitSettings(folder)).filter(({ key }) => EXECUTES.test(key));
  return [shown, ...settings.map(({ key, value }) => `${key}=${value}`)].join('  ');
}
