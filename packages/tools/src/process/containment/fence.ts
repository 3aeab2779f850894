import type { ProcessIdentity, ProcessStatus } from '../identity/identity.ts';
import type { ProcessExit } from './contained.ts';

/** A wall of the kernel's around one command: it can end what is inside in one step, and say that nothing is left. */
export interface Fence extends Disposable {
  /** The arguments that start a command inside. */
  wrap(argv: readonly string[]): readonly string[];
  /** Whether nobody inside can leave it: then an empty one proves the end. */
  readonly isTight: boolean;
  /** Told who the first process is, and when it ends. */
  enter(root: ProcessIdentity, exited: Promise<ProcessExit>): void;
  /** Whether a process holds the fence up: asking it to stop would take the fence down on those inside. */
  isPost(process: ProcessStatus): boolean;
  /** Ends everybody inside; `false` if it could not. */
  kill(): boolean;
  /** Whether the kernel says that nobody is inside any more; `undefined` when it cannot be asked. */
  isEmpty(): boolean | undefined;
}
