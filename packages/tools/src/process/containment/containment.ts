import type { SandboxKind, SandboxOptions } from '../../sandbox/options.ts';
import type { ContainedProcess, ProcessCommand } from './contained.ts';
import type { Technique } from './technique.ts';

export interface ContainmentOptions {
  /** What this system offers without privileges unless said otherwise. One that does not work here is refused at the start. */
  readonly technique?: Technique;
  /** What commands may reach; defaults to `none`. One that does not work here is refused, and never replaced by a weaker one. */
  readonly sandbox?: SandboxKind | SandboxOptions;
  /** The control group to make others in, for `cgroup`; the host's own unless said otherwise. */
  readonly cgroupRoot?: string;
}

/**
 * Starts commands whose whole tree can be ended, and is ended at the latest when the host goes, however it goes. Share one
 * in a host: it has one watchdog. Disposing it ends every command.
 *
 * @example
 * ```ts
 * import { createContainment } from '@whoa/tools';
 *
 * await using containment = createContainment();
 * const command = await containment.start({ argv: ['make', 'test'], env: {} });
 * const report = await command.end(); // { verified: 'tags', ended: 7, survivors: 0 }
 * ```
 */
export interface Containment extends AsyncDisposable {
  readonly technique: Technique;
  readonly sandbox: SandboxKind;
  /** A private folder; it goes when this or the host goes. */
  folder(): string;
  start(command: ProcessCommand): Promise<ContainedProcess>;
}
