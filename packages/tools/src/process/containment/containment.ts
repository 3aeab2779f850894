import type { SandboxKind, SandboxOptions } from '../../sandbox/options.ts';
import type { ContainedProcess, ProcessCommand } from './contained.ts';
import type { Technique } from './technique.ts';

export interface ContainmentOptions {
  /** Defaults to the best that changes nothing for commands. `start` rejects if it does not work on this machine. */
  readonly technique?: Technique | undefined;
  /** Runs each command in a PID namespace, which nothing can escape; `start` rejects if that does not work here. Defaults to `false`. */
  readonly isolate?: boolean | undefined;
  /** What commands may access; defaults to `none`. If it does not work here, `start` rejects; it is never weakened. */
  readonly sandbox?: SandboxKind | SandboxOptions | undefined;
}

/**
 * Starts commands whose whole process tree can be ended, and is ended at the latest when the host exits or is killed. Share
 * one per host, because each has its own watchdog. Disposing it ends every command.
 *
 * @example
 * ```ts
 * import { createContainment } from '@whoa/tools';
 *
 * await using containment = createContainment();
 * const command = await containment.start({ argv: ['make', 'test'], env: {} });
 * const report = await command.end(); // { verified: 'cgroup', ended: 7, survivors: 0 }
 * ```
 */
export interface Containment extends AsyncDisposable {
  /** Resolves with the technique, which is chosen at the first call or start. Rejects if it does not work here. */
  ready(): Promise<Technique>;
  /** The hosts that commands in a sandbox can reach. */
  readonly hosts: readonly string[];
  readonly sandbox: SandboxKind;
  /** The real path of the folder that commands in a sandbox work in. */
  readonly workspace: string | undefined;
  /** A private folder, removed when this is disposed or the host ends. */
  folder(): string;
  /** Starts a command whose whole process tree can be ended. */
  start(command: ProcessCommand): Promise<ContainedProcess>;
}
