import { type Ended, MAX_KILL_MS } from './containment/boundary.ts';
import type { Look } from './identity/attribution.ts';
import type { ProcessIdentity, ProcessStatus } from './identity/identity.ts';
import { isAfter, type ProcessMoment, readMoment } from './identity/moment.ts';
import { formatIdentity, type Scope, type ScopePart } from './identity/scope.ts';
import { type SignalResult, signalGroup, signalProcess } from './signal.ts';

/**
 * How often, and for how long, to repeat a look that found no process but is not complete, before reporting `no`.
 */
const MAX_CLEAN_LOOKS = 25;
const MAX_CLEAN_MS = 500;
/** Rounds of stopping processes that are still forking. */
const MAX_FREEZES = 50;

export interface EndingOptions {
  readonly graceMs: number;
  /** Called when no process was found for the first time; the proof may follow later. */
  readonly onDead?: () => void;
}

/** Ends one command: TERM and CONT, a grace period, STOP, KILL, and a look that verifies it. */
export class Ending {
  readonly scope: Scope | ScopePart;
  /** Processes seen running. */
  readonly #seen = new Set<string>();
  readonly #asked = new Set<string>();
  readonly #frozen = new Set<string>();
  readonly #killed = new Map<string, SignalResult>();
  #askedAt: ProcessMoment | undefined;
  #askUntil: number;
  #killingSince: number | undefined;
  readonly #onDead: () => void;
  #cleanLooks = 0;
  #cleanSince = 0;
  #freezes = 0;

  constructor(scope: Scope | ScopePart, options: EndingOptions) {
    this.scope = scope;
    this.#askUntil = performance.now() + options.graceMs;
    this.#onDead = options.onDead ?? (() => {});
  }

  /** Ends the grace period now. */
  shortenGrace(): void {
    this.#askUntil = Math.min(this.#askUntil, performance.now());
  }

  /**
   * Acts on what is known, after a look or before the first one. `again` asks for another look immediately, `wait` for one
   * after an event.
   */
  step(look?: Look): Ended | 'again' | 'wait' {
    const live = this.scope.members;
    const now = performance.now();
    for (const member of live) this.#seen.add(formatIdentity(member));
    if (live.length === 0) return this.#verify(look);
    this.#cleanLooks = 0;
    if (now < this.#askUntil) return this.#ask(live);
    const isLost = live.every((member) => this.#killed.get(formatIdentity(member)) === 'refused');
    // Not from the end of the grace period: this process may wake long after it.
    this.#killingSince ??= now;
    if (isLost || now > this.#killingSince + MAX_KILL_MS) return this.#endedWith('no', live);
    return this.#kill(live);
  }

  #verify(look: Look | undefined): Ended | 'again' {
    if (look === undefined) return 'again';
    this.#onDead();
    if (this.#cleanLooks++ === 0) this.#cleanSince = performance.now();
    const isComplete = look.isComplete();
    if (isComplete || this.#hasLookedEnough()) return this.#endedWith(isComplete ? 'tags' : 'no', []);
    return 'again';
  }

  #hasLookedEnough(): boolean {
    return this.#cleanLooks >= MAX_CLEAN_LOOKS && performance.now() > this.#cleanSince + MAX_CLEAN_MS;
  }

  /** Sends CONT too: stopped processes do not handle TERM. */
  #ask(live: readonly ProcessStatus[]): 'wait' {
    this.#askedAt ??= readMoment();
    const groups = this.#asked.size === 0 ? this.#askGroups() : new Set<number>();
    for (const member of live) {
      const name = formatIdentity(member);
      if (this.#asked.has(name) || this.#isCleaningUp(member, live)) continue;
      this.#asked.add(name);
      if (!groups.has(member.group) && signalProcess(member, 'SIGTERM') === 'sent') signalProcess(member, 'SIGCONT');
    }
    return 'wait';
  }

  /** Whether a process was started by another that was asked to end: by its trap, to clean up. It has the grace period. */
  #isCleaningUp(process: ProcessStatus, live: readonly ProcessStatus[]): boolean {
    return isAfter(process, this.#askedAt!) && live.some(({ pid }) => pid === process.parent);
  }

  /** Signal the whole group in one step: a shell that gets TERM after its child could start the next command. */
  #askGroups(): Set<number> {
    const held = { isHeld: this.scope.isHeld() };
    const asked = this.scope.roots.filter((root) => signalGroup(root, 'SIGTERM', held) === 'sent');
    for (const root of asked) signalGroup(root, 'SIGCONT', held);
    return new Set(asked.map((root) => root.pid));
  }

  #kill(live: readonly ProcessStatus[]): 'again' | 'wait' {
    const [root] = this.scope.roots;
    const unfinished = live.filter((member) => !this.#killed.has(formatIdentity(member)));
    if (unfinished.length === 0) return 'wait';
    const oneGroup = root !== undefined && live.every((member) => member.group === root.pid);
    if (oneGroup && signalGroup(root, 'SIGKILL', { isHeld: this.scope.isHeld() }) === 'sent') {
      for (const member of live) this.#killed.set(formatIdentity(member), 'sent');
      return 'wait';
    }
    const moving = unfinished.filter((member) => !this.#frozen.has(formatIdentity(member)));
    if (moving.length > 0 && this.#freezes++ < MAX_FREEZES) {
      // Stop them all first: processes that are killed one by one can fork in between.
      for (const member of moving) {
        this.#frozen.add(formatIdentity(member));
        signalProcess(member, 'SIGSTOP');
      }
      return 'again';
    }
    this.#freezes = 0;
    for (const member of unfinished) this.#killed.set(formatIdentity(member), signalProcess(member, 'SIGKILL'));
    return 'wait';
  }

  #endedWith(verified: Ended['verified'], survivors: readonly ProcessIdentity[]): Ended {
    return {
      verified: survivors.length === 0 ? verified : 'no',
      ended: this.#seen.size - survivors.length,
      survivors: survivors.map(({ pid, startTime }) => ({ pid, startTime })),
    };
  }
}
