import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { findHelper } from '../process/programs.ts';

/** A setting of git. */
export interface GitSetting {
  /** The file that it is in, relative to the repository. */
  readonly file: string;
  readonly key: string;
  readonly value: string;
}

/** Settings that start programs, or name files with further settings. */
export const EXECUTES: RegExp =
  /^(?:core\.(?:fsmonitor|hookspath|sshcommand|gitproxy|editor|pager|askpass)|(?:alias|filter|credential|gpg|pager|includeif|include|hook|difftool|mergetool|trailer)\.|diff\.(?:external|.*\.(?:command|textconv))|merge\..*\.driver|sequence\.editor|interactive\.difffilter|remote\..*\.(?:uploadpack|receivepack))/;

/** Only the repository, without settings of the user and the machine. */
const REPOSITORY = { GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' };
/** Read repositories of other users too: these questions start no program. */
const TRUSTED = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' };

/** Asks git about a repository. Returns nothing where git fails or is not installed. */
export async function askGit(folder: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const git = findHelper('git');
  const options = { env: { ...env, ...TRUSTED } };
  const asked = git === undefined ? undefined : promisify(execFile)(git, ['-C', folder, ...args], options);
  return (await asked?.catch(() => undefined))?.stdout ?? '';
}

/** The settings of a repository, and with `env` those of the user. */
export async function readGitSettings(
  folder: string,
  env: NodeJS.ProcessEnv = REPOSITORY,
): Promise<readonly GitSetting[]> {
  const fields = (await askGit(folder, ['config', '--list', '-z', '--show-origin'], env)).split('\0');
  return fields.flatMap((text, index) => {
    if (index % 2 === 0) return [];
    const [key = '', ...value] = text.split('\n');
    return [
      { file: fields[index - 1]!.replace(/^file:/, ''), key, value: value.length === 0 ? 'true' : value.join('\n') },
    ];
  });
}

/** What git has to know about the user. */
export function userEnvironment(): NodeJS.ProcessEnv {
  const wanted = /^(?:HOME|XDG_CONFIG_HOME|USER|LOGNAME|EMAIL|GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL))$/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => wanted.test(name)));
}
