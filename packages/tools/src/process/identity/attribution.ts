import { isOver, type ProcessIdentity, type ProcessStatus, readChildren, readStatus } from './identity.ts';
import type { Scope } from './scope.ts';
import { hidesProcesses, ProcessTable } from './table.ts';
import { type ProcessTags, readTags, type TagKey } from './tags.ts';

export interface Look {
  /**
   * Whether another listing shows the same, for the case that no process was found: what was started meanwhile was read too,
   * and belongs to no scope.
   */
  readonly isComplete: () => boolean;
}

/** What a look has read. */
interface Reading {
  readonly table: ProcessTable;
  readonly tags: ReadonlyMap<number, ProcessTags>;
  /** Older processes belong to no scope. */
  readonly since: number;
}

interface Claim {
  readonly scope: Scope;
  readonly startTime: number;
}

/** On a busy machine, processes of others end before they are read in most listings. */
const MAX_LISTINGS = 50;
const FOREIGN: ProcessTags = { keys: [], isForeign: true };

/**
 * Finds out which process belongs to which scope: the roots of a scope, processes tagged with its key, the groups and sessions
 * they lead, and all their children. Once known, a process stays known, even as an orphan.
 *
 * A look reads each process once, no matter how many scopes there are: 500 commands cost one pass, not 500.
 */
export class Attribution {
  readonly #scopes = new Map<TagKey, Scope>();
  readonly #known = new Map<number, Claim>();
  readonly #leaders = new Map<number, Claim>();
  /** Start times of processes that have an environment without a tag, by pid. */
  readonly #foreign = new Map<number, number>();

  #last: Reading | undefined;

  add(scope: Scope): void {
    this.#scopes.set(scope.key, scope);
    for (const root of scope.roots) this.#know(root, scope, { leads: true });
  }

  delete(scope: Scope): void {
    this.#scopes.delete(scope.key);
    for (const claims of [this.#known, this.#leaders]) {
      for (const [pid, claim] of claims) if (claim.scope === scope) claims.delete(pid);
    }
  }

  /** A quick look at one scope: its roots and their descendants. Returns whether any process runs. */
  lookAtFamily(scope: Scope): boolean {
    scope.clear();
    const family = scope.isHeld() ? scope.roots.map(leaderAt) : scope.roots.flatMap(findRunning);
    for (const member of family) {
      family.push(...readChildren(member.pid));
      this.#take(member, scope);
    }
    return scope.members.length > 0;
  }

  /** Reads all processes, and updates the members of every scope. */
  look(): Look {
    const since = Math.min(...[...this.#scopes.values()].map((scope) => scope.since));
    const tags = new Map<number, ProcessTags>();
    const table = new ProcessTable((status) => {
      if (status.startTime < since || this.#findKnown(status) !== undefined) return true;
      const read = this.#foreign.get(status.pid) === status.startTime ? FOREIGN : readTags(status.pid);
      if (read !== undefined) tags.set(status.pid, read);
      return read !== undefined;
    });
    const reading = { table, tags, since };
    for (const scope of this.#scopes.values()) scope.clear();
    this.#assign(table.processes.values(), reading);
    this.#pruneExited(table.processes);
    this.#last = reading;
    let isComplete: boolean | undefined;
    return { isComplete: () => (isComplete ??= this.#isComplete(reading)) };
  }

  /** A quicker look: at the members that are known, and at processes that are new. */
  refresh(): void {
    for (const scope of this.#scopes.values()) {
      const known = scope.members;
      scope.clear();
      for (const status of known.flatMap(findRunning)) if (!isOver(status)) scope.add(status);
    }
    if (this.#last !== undefined) this.#assign(this.#last.table.readNew().found, this.#last);
  }

  #isComplete(reading: Reading): boolean {
    for (let tries = 0; tries < MAX_LISTINGS; tries++) {
      const { found, hasMissed } = reading.table.readNew();
      if (this.#assign(found, reading)) return false;
      if (!hasMissed) return !hidesProcesses();
    }
    return false;
  }

  /** Finds the owners of processes that were just read. Returns whether any has one. */
  #assign(found: Iterable<ProcessStatus>, { table: { processes }, tags, since }: Reading): boolean {
    let open: ProcessStatus[] = [];
    let hasTaken = false;
    const take = (status: ProcessStatus, scope: Scope): void => {
      this.#take(status, scope);
      hasTaken = true;
    };
    for (const status of found) {
      if (status.startTime < since) continue;
      const read = tags.get(status.pid);
      if (read?.isForeign) this.#foreign.set(status.pid, status.startTime);
      const owner = this.#findRelative(status, processes) ?? this.#findTagger(status, read);
      if (owner === undefined) open.push(status);
      else take(status, owner);
    }
    for (let before = Infinity; open.length < before; ) {
      before = open.length;
      open = open.filter((status) => {
        const parent = processes.get(status.parent);
        const owner = parent && this.#findKnown(parent);
        if (owner !== undefined) take(status, owner);
        return owner === undefined;
      });
    }
    return hasTaken;
  }

  #take(status: ProcessStatus, scope: Scope): void {
    this.#know(status, scope, { leads: status.group === status.pid || status.session === status.pid });
    if (!isOver(status)) scope.add(status);
  }

  #findKnown({ pid, startTime }: ProcessIdentity): Scope | undefined {
    const known = this.#known.get(pid);
    return known?.startTime === startTime ? known.scope : undefined;
  }

  #know({ pid, startTime }: ProcessIdentity, scope: Scope, { leads }: { leads: boolean }): void {
    this.#known.set(pid, { scope, startTime });
    if (leads) this.#leaders.set(pid, { scope, startTime });
  }

  /** The owner that is known, or that of the group or session. */
  #findRelative(status: ProcessStatus, processes: ProcessTable['processes']): Scope | undefined {
    return (
      this.#findKnown(status) ??
      this.#findLeader(status, status.group, processes) ??
      this.#findLeader(status, status.session, processes)
    );
  }

  /** The id of a leader is not reused while its group has members, so distrust it only if another process has that pid. */
  #findLeader(status: ProcessStatus, leader: number, processes: ProcessTable['processes']): Scope | undefined {
    const claim = this.#leaders.get(leader);
    if (claim === undefined || status.startTime < claim.startTime) return undefined;
    const bearer = processes.get(leader);
    return bearer === undefined || bearer.startTime === claim.startTime ? claim.scope : undefined;
  }

  #findTagger({ startTime }: ProcessStatus, tags: ProcessTags | undefined): Scope | undefined {
    for (const key of tags?.keys ?? []) {
      const scope = this.#scopes.get(key);
      if (scope !== undefined && startTime >= scope.since) return scope;
    }
    return undefined;
  }

  /** Bounds the memory of commands that run for days. Leaders are kept while members of their group run. */
  #pruneExited(processes: ProcessTable['processes']): void {
    const led = new Set<number>();
    for (const status of processes.values())
      if (this.#findKnown(status) !== undefined) led.add(status.group).add(status.session);
    const prune = (pids: Map<number, unknown>, isKept: (pid: number) => boolean): void => {
      for (const pid of pids.keys()) if (!isKept(pid)) pids.delete(pid);
    };
    prune(this.#known, (pid) => processes.has(pid));
    prune(this.#foreign, (pid) => processes.has(pid));
    prune(this.#leaders, (pid) => led.has(pid) || processes.has(pid));
  }
}

/** The first process of a command when it was started: it leads a session and a group. */
function leaderAt({ pid, startTime }: ProcessIdentity): ProcessStatus {
  return { pid, startTime, state: 'S', parent: process.pid, group: pid, session: pid };
}

function findRunning({ pid, startTime }: ProcessIdentity): ProcessStatus[] {
  const status = readStatus(pid);
  return status?.startTime === startTime ? [status] : [];
}
