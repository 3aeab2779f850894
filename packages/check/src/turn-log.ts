import type { Observation, Turn, TurnEnd } from './adapter.ts';

/** Records what an adapter sees of a turn. */
export class TurnLog implements Turn {
  readonly seen: Observation[] = [];
  readonly ended: Promise<TurnEnd>;
  readonly #end: (end: TurnEnd) => void;
  readonly #waiting = new Set<{ matches: (seen: Observation) => boolean; resolve: (seen: Observation) => void }>();

  constructor() {
    const { promise, resolve } = Promise.withResolvers<TurnEnd>();
    this.ended = promise;
    this.#end = resolve;
  }

  /** Writes down one more thing. A second end is written down too, and changes nothing else. */
  record(seen: Observation): void {
    this.seen.push(seen);
    for (const waiter of this.#waiting) {
      if (!waiter.matches(seen)) continue;
      this.#waiting.delete(waiter);
      waiter.resolve(seen);
    }
    if (seen.what === 'end') this.#end(seen.end);
  }

  end(kind: TurnEnd['kind'], said: string): void {
    this.record({ what: 'end', end: { kind, detail: said } });
  }

  async waitFor(matches: (seen: Observation) => boolean): Promise<Observation> {
    const there = this.seen.find(matches);
    if (there !== undefined) return there;
    const { promise, resolve } = Promise.withResolvers<Observation>();
    const waiter = { matches, resolve };
    this.#waiting.add(waiter);
    const ended = this.ended.then(({ kind, detail }) => {
      throw new Error(`the turn ended before: ${kind} (${detail})`);
    });
    try {
      return await Promise.race([promise, ended]);
    } finally {
      this.#waiting.delete(waiter);
    }
  }
}
