import { type Dirent, lstatSync, readdirSync } from 'node:fs';
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
  const isNew = (path: string): boolean => (lstatSync(path, { throwIfNoEntry: false })?.ctimeMs ?? 0) > since;
  const lines: string[] = [];
  const limits = { maxFolders: MAX_FOLDERS, skip: ['.git'] };
  const isComplete = await walkFolders(folder, limits, async (here, entries) => {
    const isInstalled = here.includes('/node_modules');
    for (const entry of entries) {
      const path = join(here, entry.name);
      const shown = relative(folder, path);
      if (entry.name === '.git' && repositoryFiles(path).some(isNew)) lines.push(await describeRepository(here, shown));
      else if (entry.isDirectory() || isInstalled) continue;
      else if ((runsLater(shown) || RUNS_WHEN_ASKED.test(shown)) && isNew(path)) lines.push(shown);
    }
  });
  return isComplete ? lines : [...lines, `more than ${MAX_FOLDERS} folders, of which some were not checked`];
}

/** Visits folders, those at the top first. Returns whether it visited all of them. */
export async function walkFolders(
  root: string,
  { maxFolders, skip }: { readonly maxFolders: number; readonly skip: readonly string[] },
  visit: (folder: string, entries: readonly Dirent[]) => Promise<void> | void,
): Promise<boolean> {
  const folders = [root];
  for (const folder of folders) {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    await visit(folder, entries);
    const below = entries.filter((entry) => entry.isDirectory() && !skip.includes(entry.name));
    if (folders.length + below.length > maxFolders) return false;
    folders.push(...below.map(({ name }) => join(folder, name)));
  }
  return true;
}

function repositoryFiles(git: string): string[] {
  const hooks = join(git, 'hooks');
  const isFolder = lstatSync(hooks, { throwIfNoEntry: false })?.isDirectory() ?? false;
  const names = isFolder ? readdirSync(hooks).map((name) => join('hooks', name)) : [];
  return lstatSync(git).isDirectory() ? [...GIT_PARTS, ...names].map((part) => join(git, part)) : [git];
}

async function describeRepository(folder: string, shown: string): Promise<string> {
  const settings = (await readGitSettings(folder)).filter(({ key }) => EXECUTES.test(key));
  return [shown, ...settings.map(({ key, value }) => `${key}=${value}`)].join('  ');
}
