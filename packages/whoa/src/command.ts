import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import type { System } from './system.ts';
import { formatDuration } from './terminal/text/durations.ts';

/** A subcommand of `whoa`. */
export interface Command {
  readonly help: string;
  /** The options that it parses. Every command also has `--json` and `--help`. */
  readonly options: OptionTable;
  /** What its arguments can be, for completions: these words, or tasks. */
  readonly completes?: 'tasks' | readonly string[];
  /** Returns the exit code. An error that it throws is printed as one line. */
  run(args: readonly string[], own: Use, system: System): Promise<number>;
}

/** A command as it is listed. */
export interface CommandEntry {
  readonly summary: string;
  readonly load: () => Promise<{ readonly command: Command }>;
  /** Its standard output carries a protocol, so it has no `--json`. */
  readonly isProtocol?: true;
}

/** Registers a resource that is disposed when the command ends, in reverse order. */
export type Use = <Thing extends Disposable | AsyncDisposable>(thing: Thing) => Thing;

/** Exit codes of all commands. */
export const EXIT = { success: 0, failed: 1, usage: 2, cancelled: 130 } as const;

/** Thrown for mistakes that the user can correct. The message says how. */
export class UsageError extends Error {
  override readonly name: string = 'UsageError';
  readonly code: string;

  constructor(message: string, code = 'USAGE') {
    super(message);
    this.code = code;
  }
}

/** The options of a command, and the only values that some of them accept. Parsing and completions go by it. */
export type OptionTable = Readonly<
  Record<string, ParseArgsOptionsConfig[string] & { readonly values?: readonly string[] }>
>;

const SHARED = { json: { type: 'boolean', default: false } } as const;

type Shared<Options> = Options & typeof SHARED;
type Parsed<Options extends OptionTable> = ReturnType<
  typeof parseArgs<{ options: Shared<Options>; allowPositionals: true; strict: true }>
>['values'];

/** What was given for each option. */
export type Values<Options extends OptionTable> = {
  readonly [Name in keyof Parsed<Options>]: Shared<Options>[Name & keyof Shared<Options>] extends {
    readonly values: readonly (infer Value)[];
  }
    ? Value | Extract<Parsed<Options>[Name], undefined>
    : Parsed<Options>[Name];
};

/** Parses the arguments of a command, with at most `maxPositionals` positionals. Every command accepts `--json`. */
export function readArguments<const Options extends OptionTable>(
  args: readonly string[],
  options: Options,
  maxPositionals = 0,
): { readonly values: Values<Options>; readonly positionals: readonly string[] } {
  const { values: given, positionals } = parse(args, options);
  for (const [name, { values }] of Object.entries<OptionTable[string]>(options)) {
    const value = given[name];
    if (typeof value !== 'string' || values === undefined || values.includes(value)) continue;
    throw new UsageError(`--${name}: expected one of ${values.join(', ')}, got '${value}'`);
  }
  const extra = positionals[maxPositionals];
  if (extra !== undefined) throw new UsageError(`unexpected argument '${extra}'; --help lists the arguments`);
  return { values: given as Values<Options>, positionals };
}

function parse(args: readonly string[], options: OptionTable): ReturnType<typeof parseArgs> {
  try {
    return parseArgs({
      args: joinNegativeNumbers(args, options),
      options: { ...options, ...SHARED },
      allowPositionals: true,
      strict: true,
    });
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    const [, option = ''] = /'(?:-\w, )?(-[^' ]*)/.exec(message) ?? [];
    if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
      throw new UsageError(`${option}: unknown option; --help lists the options`);
    }
    if (code !== 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE') throw new UsageError(message);
    const takesValue = options[option.slice(2)]?.type === 'string';
    const advice = takesValue ? `expected a value; if it begins with a dash, write ${option}=VALUE` : 'takes no value';
    throw new UsageError(`${option}: ${advice}`);
  }
}

/** Makes `--limit -1` one argument, so that the command says what is wrong with the number. */
function joinNegativeNumbers(args: readonly string[], options: OptionTable): string[] {
  const joined: string[] = [];
  for (const arg of args) {
    const last = joined.at(-1) ?? '';
    const isValue = /^-\d/.test(arg) && last.startsWith('--') && options[last.slice(2)]?.type === 'string';
    if (isValue) joined[joined.length - 1] = `${last}=${arg}`;
    else joined.push(arg);
  }
  return joined;
}

const UNITS: Readonly<Record<string, number>> = { '': 1_000, ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

interface Range {
  readonly min?: number;
  readonly max?: number;
}

/** 24 days: longer timers of Node end immediately. */
const MAX_TIMER_MS = 24 * 86_400_000;

/** Parses an option whose value is a duration: `90s`, `5m`, `1h`. A number alone means seconds. Returns milliseconds. */
export function readDuration(option: string, text: string, { min = 1, max = MAX_TIMER_MS }: Range = {}): number {
  const [, amount = '', unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h|)$/.exec(text) ?? [];
  const ms = Number(amount) * UNITS[unit]!;
  if (ms > max) throw new UsageError(`${option}: expected at most ${formatDuration(max)}, got '${text}'`);
  if (amount !== '' && ms >= min) return ms;
  throw new UsageError(`${option}: expected a duration such as 90s, 5m or 1h, got '${text}'`);
}

/** Parses an option whose value is a whole number. */
export function readCount(option: string, text: string, { min = 1, max = Infinity }: Range): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= min && count <= max) return count;
  throw new UsageError(`${option}: expected a whole number from ${min} to ${max}, got '${text}'`);
}
