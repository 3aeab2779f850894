import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';

/** A subcommand of `whoa`. */
export interface Command {
  readonly help: string;
  /** Returns the exit code. An error that it throws is printed as one line. */
  run(args: readonly string[], own: Own): Promise<number>;
}

/** Registers a resource that is disposed when the command ends, in reverse order. */
export type Own = <Thing extends Disposable | AsyncDisposable>(thing: Thing) => Thing;

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

type Read<Options extends ParseArgsOptionsConfig> = ReturnType<
  typeof parseArgs<{ args: string[]; options: Options & typeof SHARED; allowPositionals: true; strict: true }>
>;

const SHARED = { json: { type: 'boolean', default: false } } as const;

/** Parses the arguments of a command, with at most `maxPositionals` positionals. Every command accepts `--json`. */
export function readArguments<const Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Options,
  maxPositionals = 0,
): Read<Options> {
  const read = parse(args, options);
  const extra = read.positionals[maxPositionals];
  if (extra !== undefined) throw new UsageError(`unexpected argument '${extra}'; --help lists the arguments`);
  return read;
}

function parse<const Options extends ParseArgsOptionsConfig>(args: readonly string[], options: Options): Read<Options> {
  try {
    return parseArgs({
      args: [...args],
      options: { ...options, ...SHARED },
      allowPositionals: true,
      strict: true,
    });
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    const [, option = ''] = /'(-[^' ]*)/.exec(message) ?? [];
    if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
      throw new UsageError(`${option}: unknown option; --help lists the options`);
    }
    throw new UsageError(message);
  }
}

/** Parses an option whose value is a whole number. */
export function readCount(option: string, text: string, { min = 1, max }: { min?: number; max: number }): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= min && count <= max) return count;
  throw new UsageError(`${option}: expected a whole number from ${min} to ${max}, got '${text}'`);
}
