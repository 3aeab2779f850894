/** Which variables of the host's environment a command gets. */
export interface EnvironmentOptions {
  /** Names to pass in addition to the harmless ones. A `*` at the end matches any suffix. */
  readonly allow?: readonly string[] | undefined;
  /** Variables set for every command. */
  readonly set?: Readonly<Record<string, string>> | undefined;
}

// Keep this an allow-list: the host's environment contains keys and tokens that a model's command must not see.
const HARMLESS =
  'PATH Path HOME USER LOGNAME SHELL LANG LANGUAGE LC_* TZ TMPDIR SystemRoot SYSTEMROOT ComSpec PATHEXT TEMP TMP'.split(
    ' ',
  );

/** No user can page, type a password or see colours. Output should not be buffered. */
const UNATTENDED = {
  TERM: 'dumb',
  NO_COLOR: '1',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  GIT_TERMINAL_PROMPT: '0',
  PYTHONUNBUFFERED: '1',
};

/**
 * Creates the environment of a command: the allowed part of `source`, settings for unattended commands, and `set`.
 *
 * @returns The variables.
 */
export function createShellEnvironment(
  { allow = [], set = {} }: EnvironmentOptions = {},
  source: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  const isAllowed = matcher([...HARMLESS, ...allow]);
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(source)) {
    if (value !== undefined && isAllowed(name)) environment[name] = value;
  }
  return { ...environment, ...UNATTENDED, ...set };
}

function matcher(patterns: readonly string[]): (name: string) => boolean {
  const names = new Set(patterns);
  const prefixes = patterns.filter((pattern) => pattern.endsWith('*')).map((pattern) => pattern.slice(0, -1));
  return (name) => names.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
}
