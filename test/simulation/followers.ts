import { isDeepStrictEqual } from 'node:util';
import type { FollowEvent, JournalEntry, TaskRecord, TaskRef } from '@whoa/tasks';
import { ShownJournal } from '../tasks/shown-journal.ts';
import type { Client, SimulationContext } from './context.ts';

/** How often a reader is cut off and reconnects. */
const MAX_CUTS = 3;

/**
 * Readers of tasks, such as a page or a server: over the bad network, cut off, killed, and back from the last event
 * that they got.
 */
export class Followers {
  readonly #context: SimulationContext;
  readonly #all: Follower[] = [];

  constructor(context: SimulationContext) {
    this.#context = context;
  }

  get areDone(): boolean {
    return this.#all.every(({ hasEnded }) => hasEnded);
  }

  follow(task: TaskRef): void {
    const follower = new Follower(this.#context, task, `f${this.#all.length + 1}`);
    this.#all.push(follower);
    follower.connect();
  }

  async judge(): Promise<void> {
    for (const one of this.#all) await one.judge();
  }
}

class Follower {
  readonly #context: SimulationContext;
  readonly #task: TaskRef;
  readonly #name: string;
  readonly #shown = new ShownJournal();
  readonly #ends: TaskRecord[] = [];
  #cursor: string | undefined;
  #readings = 0;

  constructor(context: SimulationContext, task: TaskRef, name: string) {
    this.#context = context;
    this.#task = task;
    this.#name = name;
  }

  get hasEnded(): boolean {
    return this.#ends.length > 0;
  }

  /** Connects, or reconnects: as the same process, or as another one that got the position. */
  connect(before?: Client): void {
    const { random } = this.#context;
    this.#readings++;
    const client = before ?? this.#context.connectClient(`${this.#name}.${this.#readings}`);
    const reading = { number: this.#readings, leaving: new AbortController() };
    this.#context.attempt(() => this.#read(client, reading));
    if (this.#readings > MAX_CUTS || !random.oneIn(2)) return;
    const [isKilled, awayMs] = [random.oneIn(2), random.below(3_000)];
    this.#context.userAt(random.below(5_000), () => {
      if (this.hasEnded) return Promise.resolve();
      if (isKilled) client.process.die();
      else reading.leaving.abort();
      this.#readings++;
      this.#context.userAt(awayMs, () => Promise.resolve(this.connect(isKilled ? undefined : client)));
      return Promise.resolve();
    });
  }

  async #read({ process, store }: Client, reading: { number: number; leaving: AbortController }): Promise<void> {
    const options = { after: this.#cursor, signal: reading.leaving.signal, world: process.world };
    for await (const one of this.#context.tasks.followTask(store, this.#task, options)) {
      if (this.#readings === reading.number) await this.#record(one);
    }
    if (this.#readings === reading.number && !this.hasEnded) this.#broken('P5', 'its following ended before the task');
  }

  async #record(one: FollowEvent): Promise<void> {
    if (this.hasEnded) this.#broken('P1', `it was given '${one.type}' after the end`);
    if (one.type === 'end') {
      this.#ends.push(one.task);
      const now = await this.#context.store.get(this.#task);
      if (!isDeepStrictEqual(now, one.task)) this.#broken('P1', `it got an end that the store does not have`);
      return;
    }
    this.#shown.add(one);
    this.#cursor = one.cursor;
  }

  /** It shows what the journal has, once, and nothing else. */
  async judge(): Promise<void> {
    if (!this.hasEnded) {
      this.#broken('P2', 'it never saw the end');
      return;
    }
    const journal: JournalEntry[] = [];
    for (;;) {
      const piece = await this.#context.store.read(this.#task, { after: journal.at(-1)?.position ?? 0 });
      if ((piece[0]?.position ?? 0) <= (journal.at(-1)?.position ?? 0)) break;
      journal.push(...piece);
    }
    for (const problem of this.#shown.findProblems(journal)) this.#broken('P5', problem);
  }

  #broken(promise: 'P1' | 'P2' | 'P5', what: string): void {
    this.#context.violations.push({ promise, what: `${this.#task.id}: ${this.#name}: ${what}` });
  }
}
