import type { ProcessIdentity, ProcessStatus } from '../identity/identity.ts';
import type { ProcessExit } from './contained.ts';

/** A kernel feature around one command that can end all processes inside in one step and verify that none is left. */
export interface Fence extends Disposable {
  /** The arguments that start a command inside. */
  wrap(argv: readonly string[]): readonly string[];
  /** Whether processes cannot leave it. Then an empty fence proves the end. */
  readonly isTight: boolean;
  /** Called with the first process and its end. */
  enter(root: ProcessIdentity, exited: Promise<ProcessExit>): void;
  /** Whether a process maintains the fence. Don't signal it: that would kill all processes inside. */
  isPost(process: ProcessStatus): boolean;
  /** Kills all processes inside. Returns `false` if it could not. */
  kill(): boolean;
  /** Whether no process is inside, as the kernel reports it; `undefined` if that is not known. */
  isEmpty(): boolean | undefined;
}
