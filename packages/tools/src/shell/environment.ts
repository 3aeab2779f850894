/** What of the host's environment a command gets. */
export interface EnvironmentOptions {
  /** Names that are handed on beside the harmless ones; a `*` at the end stands for any rest. */
  readonly allow?: readonly string[];
  /** Variables set for every command. */
  readonly set?: Readonly<Record<string, string>>;
}

// An allow-list: keys and tokens live in the host's environment, and a command that a model wrote must not find them.
const HARMLESS = [
  'PATH',
  'Path',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LANGUAGE',
  'LC_*',
  'TZ',
  'TMPDIR',
  'SystemRoot',
  'SYSTEMROOT',
  'ComSpec',
  'PATHEXT',
  'TEMP',
  'TMP',
];

/** Nobody is there to page, to type a password or to look at colours, and what is printed should be printed at once. */
const UNATTENDED = {
  TERM: 'dumb',
  NO_COLOR: '1',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  GIT_TERMINAL_PROMPT: '0',
  PYTHONUNBUFFERED: '1',
};

/**
 * Creates the environment of a command: what is allowed of `source`, what an unattended command needs, and what is set.
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
