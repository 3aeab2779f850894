import type { ProcessIdentity, ProcessStatus } from './identity.ts';
import type { TagKey } from './tags.ts';

export interface ScopeOptions {
  readonly roots: readonly ProcessIdentity[];
  readonly since: number;
  readonly isHeld?: () => boolean;
}

/** The processes of one command, or of all commands of a dead host. `Attribution` assigns processes to it. */
export class Scope {
  readonly key: TagKey;
  /** Processes that belong to it without a tag, with the groups and sessions they lead. */
  readonly roots: readonly ProcessIdentity[];
  /** Older processes cannot belong to it. */
  readonly since: number;
  /** Whether its roots are our children and not reaped yet. Then their pids cannot have been reused. */
  readonly isHeld: () => boolean;
  #members: ProcessStatus[] = [];

  constructor(key: TagKey, options: ScopeOptions) {
    this.key = key;
    this.roots = options.roots;
    this.since = options.since;
    this.isHeld = options.isHeld ?? (() => false);
  }

  /** The processes that ran at the last look. */
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

/** Some processes of a scope, which are ended while the others continue. */
export interface ScopePart extends Pick<Scope, 'members' | 'roots' | 'isHeld'> {
  readonly whole: Scope;
}

export function narrowScope(whole: Scope, choose: (members: readonly ProcessStatus[]) => ProcessStatus[]): ScopePart {
  return {
    whole,
    roots: [],
    isHeld: () => false,
    get members() {
      return choose(whole.members);
    },
  };
}

/** A unique key for a process. */
export function formatIdentity({ pid, startTime }: ProcessIdentity): string {
  return `${pid}/${startTime}`;
}
