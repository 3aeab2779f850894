import type { Output } from './terminal/boundary.ts';
import type { TypedInput } from './terminal/input/typed-lines.ts';

/** Where a command was started. */
export interface ConnectionContext {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: () => string;
}

/** The parts of `process` that commands use. A program that runs commands without a process for each passes its own. */
export interface System extends ConnectionContext, Pick<NodeJS.Process, 'on' | 'off'> {
  readonly stdin: TypedInput;
  readonly stdout: Output;
  readonly stderr: Output & NodeJS.WritableStream;
  readonly chdir: (folder: string) => void;
  readonly exit: (code: number) => never;
}
