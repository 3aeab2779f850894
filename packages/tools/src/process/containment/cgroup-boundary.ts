import { setTimeout as sleep } from 'node:timers/promises';
import { waitAtMost } from '@whoa/core/internal';
import { isOver, type ProcessIdentity, type ProcessStatus, readStatus } from '../identity/identity.ts';
import { signalGroup, signalProcess } from '../signal.ts';
import { ask, type Boundary, type Ended, MAX_KILL_MS, whenAborted } from './boundary.ts';
import type { Cgroup } from './cgroup.ts';
import type { ProcessExit } from './contained.ts';

/** How long a cgroup may take to freeze, and the pause in which killed processes leave it. */
const MAX_FREEZE_MS = 200;
const TICK_MS = 5;

export interface CgroupBoundaryOptions {
  readonly root: ProcessIdentity;
  readonly exited: Promise<ProcessExit>;
}

/** The cgroup around one command. The launcher, our child, enters it before it becomes the command. */
export class CgroupBoundary implements Boundary {
  readonly verified = 'cgroup';
  readonly #cgroup: Cgroup;
  readonly #root: ProcessIdentity;
  readonly #exited: Promise<ProcessExit>;
  #hasExited = false;

  constructor(cgroup: Cgroup, { root, exited }: CgroupBoundaryOptions) {
    this.#cgroup = cgroup;
    this.#root = root;
    this.#exited = exited.finally(() => (this.#hasExited = true));
  }

  members(): readonly ProcessStatus[] {
    // The launcher may not have entered yet.
    const pids = new Set([...(this.#hasExited ? [] : [this.#root.pid]), ...this.#cgroup.pids()]);
    return [...pids].flatMap((pid) => readStatus(pid) ?? []).filter((status) => !isOver(status));
  }

  isEmpty(): boolean {
    return this.#hasExited && this.#cgroup.isEmpty();
  }

  askGroup(): number | undefined {
    const isHeld = !this.#hasExited;
    if (!isHeld || signalGroup(this.#root, 'SIGTERM', { isHeld }) !== 'sent') return undefined;
    signalGroup(this.#root, 'SIGCONT', { isHeld });
    return this.#root.pid;
  }

  kill(): void {
    // First the launcher, so that it does not enter afterwards.
    if (!this.#hasExited) signalProcess(this.#root, 'SIGKILL');
    this.#cgroup.kill();
  }

  async waitUntilEmpty(maxMs: number, signal?: AbortSignal): Promise<boolean> {
    const until = performance.now() + maxMs;
    if (!this.#hasExited) await waitAtMost(Promise.race([this.#exited, whenAborted(signal)]), maxMs);
    return this.#hasExited && this.#cgroup.waitUntilEmpty(Math.max(0, until - performance.now()), signal);
  }

  remove(): void {
    this.#cgroup.remove();
  }

  /** Ends the chosen processes while the others continue. A frozen look at which none is chosen is the proof. */
  async endChosen(
    choose: (members: readonly ProcessStatus[]) => readonly ProcessStatus[],
    { graceMs, hurry, onDead }: { graceMs: number; hurry: AbortSignal; onDead: () => void },
  ): Promise<Ended> {
    const seen = new Set<number>();
    const look = (): readonly ProcessStatus[] => {
      const live = choose(this.members());
      for (const { pid } of live) seen.add(pid);
      if (live.length === 0) onDead();
      return live;
    };
    const asked = look();
    ask(asked);
    const graceUntil = performance.now() + (asked.length === 0 ? 0 : graceMs);
    while (performance.now() < graceUntil && !hurry.aborted && look().length > 0) await sleep(TICK_MS);
    const killUntil = performance.now() + MAX_KILL_MS;
    for (;;) {
      await this.#cgroup.freeze(MAX_FREEZE_MS);
      // Another call may have thawed it meanwhile. Nothing can come between the next two lines.
      const isFrozen = this.#cgroup.isFrozen();
      const live = look();
      for (const member of live) signalProcess(member, 'SIGKILL');
      this.#cgroup.thaw();
      const isProved = isFrozen && live.length === 0;
      if (isProved || performance.now() > killUntil) {
        return { verified: isProved ? 'cgroup' : 'no', ended: seen.size - live.length, survivors: live };
      }
      if (live.length > 0) await sleep(TICK_MS);
    }
  }
}
