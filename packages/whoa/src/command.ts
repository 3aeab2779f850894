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

/** Reads a command's arguments; every command takes `--json`. */
export function readArguments<const Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Options,
): Read<Options> {
  try {
    return parseArgs({
      args: [...args],
      options: { ...options, ...SHARED },
      allowPositionals: true,
      strict: true,
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
