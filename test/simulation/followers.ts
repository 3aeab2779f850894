import { isDeepStrictEqual } from 'node:util';
import type { FollowEvent, JournalEntry, TaskRecord, TaskRef } from '@whoa/tasks';
import { isHeldLater } from '../../packages/core/src/testing/draft.ts';
import type { Stage, Visitor } from './stage.ts';

/** How often a reader is cut and comes back. */
const MAX_CUTS = 3;

/**
 * Readers of tasks, as a page or a server is one: over the bad network, cut, killed, and back from the last position that
 * they were given.
 */
export class Followers {
  readonly #stage: Stage;
  readonly #all: Follower[] = [];

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  get areDone(): boolean {
    return this.#all.every(({ hasEnded }) => hasEnded);
  }

  follow(task: TaskRef): void {
    const follower = new Follower(this.#stage, task, `f${this.#all.length + 1}`);
    this.#all.push(follower);
    follower.come();
  }

  async judge(): Promise<void> {
    for (const one of this.#all) await one.judge();
  }
}

class Follower {
  readonly #stage: Stage;
  readonly #task: TaskRef;
  readonly #name: string;
  readonly #seen = new Map<number, JournalEntry>();
  readonly #ends: TaskRecord[] = [];
  #position = 0;
  #visits = 0;

  constructor(stage: Stage, task: TaskRef, name: string) {
    this.#stage = stage;
    this.#task = task;
    this.#name = name;
  }

  get hasEnded(): boolean {
    return this.#ends.length > 0;
  }

  /** Comes, or comes back: as the same process, or as another one that was told the position. */
  come(before?: Visitor): void {
    const { chance } = this.#stage;
    this.#visits++;
    const visitor = before ?? this.#stage.visit(`${this.#name}.${this.#visits}`);
    const visit = { number: this.#visits, leaving: new AbortController() };
    this.#stage.attempt(() => this.#read(visitor, visit));
    if (this.#visits > MAX_CUTS || !chance.oneIn(2)) return;
    const [dies, awayMs] = [chance.oneIn(2), chance.below(3_000)];
    this.#stage.userAt(chance.below(5_000), () => {
      if (this.hasEnded) return Promise.resolve();
      if (dies) visitor.process.die();
      else visit.leaving.abort();
      this.#visits++;
      this.#stage.userAt(awayMs, () => Promise.resolve(this.come(dies ? undefined : visitor)));
      return Promise.resolve();
    });
  }

  async #read({ process, store }: Visitor, visit: { number: number; leaving: AbortController }): Promise<void> {
    const options = { after: this.#position, signal: visit.leaving.signal, world: process.world };
    for await (const one of this.#stage.tasks.followTask(store, this.#task, options)) {
      if (this.#visits === visit.number) await this.#note(one);
    }
    if (this.#visits === visit.number && !this.hasEnded) this.#broken('P5', 'its following ended before the task');
  }

  async #note(one: FollowEvent): Promise<void> {
    if (this.hasEnded) this.#broken('P1', `it was given '${one.type}' after the end`);
    if (one.type === 'end') {
      this.#ends.push(one.task);
      const now = await this.#stage.store.get(this.#task);
      if (!isDeepStrictEqual(now, one.task)) this.#broken('P1', `it got an end that the store does not have`);
      return;
    }
    const { type: _type, ...entry } = one;
    if (entry.position <= this.#position) {
      this.#broken('P5', `it was given ${entry.position} after ${this.#position}`);
    }
    this.#position = Math.max(this.#position, entry.position);
    this.#seen.set(entry.position, entry as unknown as JournalEntry);
  }

  /** It was given what stands in the journal, all of it, and nothing else but drafts. */
  async judge(): Promise<void> {
    if (!this.hasEnded) this.#broken('P2', 'it never saw the end');
    const journal: JournalEntry[] = [];
    for (;;) {
      const piece = await this.#stage.store.read(this.#task, { after: journal.at(-1)?.position ?? 0 });
      if ((piece[0]?.position ?? 0) <= (journal.at(-1)?.position ?? 0)) break;
      journal.push(...piece);
    }
    const there = new Map(journal.map((entry) => [entry.position, entry]));
    for (const [position, entry] of there) {
      const seen = this.#seen.get(position);
      if (seen === undefined && this.hasEnded) this.#broken('P5', `it was never given ${position}`);
      if (seen !== undefined && !isDeepStrictEqual(seen, entry)) this.#broken('P5', `${position} changed later`);
    }
    for (const [position, entry] of this.#seen) {
      if (there.has(position) || isHeldLater(entry, journal)) continue;
      this.#broken('P5', `it was given ${position}, which is not there any more`);
    }
  }

  #broken(promise: 'P1' | 'P2' | 'P5', what: string): void {
    this.#stage.violations.push({ promise, what: `${this.#task.id}: ${this.#name}: ${what}` });
  }
}
