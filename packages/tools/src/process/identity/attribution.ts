import { isOver, type ProcessIdentity, type ProcessStatus, readChildren, readStatus } from './identity.ts';
import { haveOnlyGoneUp, type PidMoment, readPidMoment } from './pid-clock.ts';
import type { Scope } from './scope.ts';
import { type ProcessTable, readTable } from './table.ts';
import { readTags, type TagKey } from './tags.ts';

/** What a look has read. */
interface Look extends Pick<ProcessTable, 'isComplete'> {
  /** Whether it read every process that can belong to a scope. */
  readonly isFull: boolean;
}

interface Claim {
  readonly scope: Scope;
  readonly startTime: number;
}

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
  /** Unowned processes seen once. During an exec a process has no environment, so look at each twice. */
  #unconfirmed: readonly number[] = [];
  /** All processes up to this pid have been examined. */
  #examined: PidMoment = { last: Infinity, forks: 0, lastBefore: Infinity };

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

  /**
   * Updates the members of every scope. Returns whether the look is complete. While pids have only increased, a look reads
   * only known and new processes. That can miss a child whose pid was assigned before the last look and that appeared
   * after it: its parent was still forking. A full look, taken when no parent is left, misses none.
   */
  look({ isFull = false }: { readonly isFull?: boolean } = {}): Look {
    const now = readPidMoment();
    const isOn = !isFull && haveOnlyGoneUp(this.#examined, now);
    const floor = isOn ? this.#examined.last + 1 : this.#floor(now);
    const again = isOn ? new Set([...this.#known.keys(), ...this.#unconfirmed]) : [];
    const { processes, through, isComplete } = readTable({ floor, last: now.last, also: again });
    this.#examined = { last: through, forks: now.forks, lastBefore: now.lastBefore };

    let since = Infinity;
    for (const scope of this.#scopes.values()) {
      scope.clear();
      since = Math.min(since, scope.since);
    }
    const owners = new Map<number, Scope>();
    const open: ProcessStatus[] = [];
    for (const status of processes.values()) {
      if (status.startTime < since) continue;
      const owner = this.#findOwner(status, processes);
      if (owner === undefined) open.push(status);
      else owners.set(status.pid, owner);
    }
    const unattributed = adoptChildren(open, owners).map(({ pid }) => pid);
    this.#unconfirmed = unattributed.filter((pid) => pid >= floor);
    this.#pruneExited(processes, owners);
    for (const [pid, scope] of owners) this.#take(processes.get(pid)!, scope);
    return { isComplete, isFull: !isOn };
  }

  #take(status: ProcessStatus, scope: Scope): void {
    this.#know(status, scope, { leads: status.group === status.pid || status.session === status.pid });
    if (!isOver(status)) scope.add(status);
  }

  /** The lowest pid that can belong to a scope: processes below it were started before all scopes. */
  #floor(now: PidMoment): number {
    let floor = Infinity;
    for (const { born } of this.#scopes.values()) {
      if (!haveOnlyGoneUp(born, now)) return 1;
      floor = Math.min(floor, born.last);
    }
    return floor;
  }

  #know({ pid, startTime }: ProcessIdentity, scope: Scope, { leads }: { leads: boolean }): void {
    this.#known.set(pid, { scope, startTime });
    if (leads) this.#leaders.set(pid, { scope, startTime });
  }

  #findOwner(status: ProcessStatus, processes: ReadonlyMap<number, ProcessStatus>): Scope | undefined {
    const known = this.#known.get(status.pid);
    if (known?.startTime === status.startTime) return known.scope;
    return (
      this.#findLeader(status, status.group, processes) ??
      this.#findLeader(status, status.session, processes) ??
      this.#findTagger(status)
    );
  }

  /** The id of a leader is not reused while its group has members, so distrust it only if another process has that pid. */
  #findLeader(status: ProcessStatus, leader: number, processes: ProcessTable['processes']): Scope | undefined {
    const claim = this.#leaders.get(leader);
    if (claim === undefined || status.startTime < claim.startTime) return undefined;
    const bearer = processes.get(leader);
    return bearer === undefined || bearer.startTime === claim.startTime ? claim.scope : undefined;
  }

  #findTagger(status: ProcessStatus): Scope | undefined {
    if (isOver(status)) return undefined;
    for (const key of readTags(status.pid)) {
      const scope = this.#scopes.get(key);
      if (scope !== undefined && status.startTime >= scope.since) return scope;
    }
    return undefined;
  }

  /** Bounds the memory of commands that run for days. Leaders are kept while members of their group run. */
  #pruneExited(processes: ProcessTable['processes'], owners: ReadonlyMap<number, Scope>): void {
    const led = new Set<number>();
    for (const pid of owners.keys()) {
      const { group, session } = processes.get(pid)!;
      led.add(group).add(session);
    }
    for (const pid of this.#known.keys()) if (!processes.has(pid)) this.#known.delete(pid);
    for (const pid of this.#leaders.keys()) if (!led.has(pid) && !processes.has(pid)) this.#leaders.delete(pid);
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

/** Assigns children to the owners of their parents, recursively. Returns the processes without an owner. */
function adoptChildren(open: readonly ProcessStatus[], owners: Map<number, Scope>): readonly ProcessStatus[] {
  let rest = open;
  for (let before = Infinity; rest.length < before; ) {
    before = rest.length;
    rest = rest.filter((status) => {
      const owner = owners.get(status.parent);
      if (owner !== undefined) owners.set(status.pid, owner);
      return owner === undefined;
    });
  }
  return rest;
}
