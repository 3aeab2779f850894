import type { ProcessIdentity, ProcessStatus } from './identity.ts';
import type { PidMoment } from './pid-clock.ts';
import type { TagKey } from './tags.ts';

export interface ScopeOptions {
  readonly roots: readonly ProcessIdentity[];
  readonly since: number;
  readonly born: PidMoment;
  readonly isHeld?: () => boolean;
}

/** One command, or one dead host's commands: what `Attribution` gives processes to. */
export class Scope {
  readonly key: TagKey;
  /** Processes that are in it without being tagged, with the groups and sessions they lead. */
  readonly roots: readonly ProcessIdentity[];
  /** Nothing older than this can belong to it. */
  readonly since: number;
  /** When nothing of it but its roots had been started. */
  readonly born: PidMoment;
  /** Whether its roots are children of this process that were not reaped yet: then their pids are certainly theirs. */
  readonly isHeld: () => boolean;
  #members: ProcessStatus[] = [];

  constructor(key: TagKey, options: ScopeOptions) {
    this.key = key;
    this.roots = options.roots;
    this.since = options.since;
    this.born = options.born;
    this.isHeld = options.isHeld ?? (() => false);
  }

  /** Those of its processes that ran at the last look. */
  get members(): readonly ProcessStatus[] {
    return this.#members;
  }

  /** Starts a new look. */
  clear(): void {
    this.#members = [];
  }

  add(member: ProcessStatus): void {
    this.#members.push(member);
  }
}

/** One process and no other. */
export function nameOf({ pid, startTime }: ProcessIdentity): string {
  return `${pid}/${startTime}`;
}
