import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';

/** One word of the command line. */
export interface Command {
  readonly help: string;
  /** Answers the exit code. What it throws is told in one line. */
  run(args: readonly string[], own: Own): Promise<number>;
}

/** Hands something over to whoever runs the command: it is disposed after it, the last one first. */
export type Own = <Thing extends Disposable | AsyncDisposable>(thing: Thing) => Thing;

/** How commands end. */
export const EXIT = { success: 0, failed: 1, usage: 2, cancelled: 130 } as const;

/** Thrown when the person can put it right: the message says how. */
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

/** Reads a command's arguments, of which so many are no options; every command takes `--json`. */
export function readArguments<const Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Options,
  maxPositionals = 0,
): Read<Options> {
  const read = parse(args, options);
  const extra = read.positionals[maxPositionals];
  if (extra !== undefined) throw new UsageError(`'${extra}' is too much; --help says what it takes`);
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
      throw new UsageError(`${option}: there is no such option; --help lists them`);
    }
    throw new UsageError(message);
  }
}

/** Reads an option that is a whole number. */
export function readCount(option: string, text: string, { min = 1, max }: { min?: number; max: number }): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= min && count <= max) return count;
  throw new UsageError(`${option}: '${text}' is no whole number from ${min} to ${max}`);
}
