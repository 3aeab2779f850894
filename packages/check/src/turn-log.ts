import type { Observation, Turn, TurnEnd } from './adapter.ts';

/** Records what an adapter sees of a turn. */
export class TurnLog implements Turn {
  readonly observations: Observation[] = [];
  readonly ended: Promise<TurnEnd>;
  readonly #end: (end: TurnEnd) => void;
  readonly #waiting = new Set<{
    matches: (observation: Observation) => boolean;
    resolve: (observation: Observation) => void;
  }>();

  constructor() {
    const { promise, resolve } = Promise.withResolvers<TurnEnd>();
    this.ended = promise;
    this.#end = resolve;
  }

  /** Writes down one more thing. A second end is written down too, and changes nothing else. */
  record(observation: Observation): void {
    this.observations.push(observation);
    for (const waiter of this.#waiting) {
      if (!waiter.matches(observation)) continue;
      this.#waiting.delete(waiter);
      waiter.resolve(observation);
    }
    if (observation.what === 'end') this.#end(observation.end);
  }

  end(kind: TurnEnd['kind'], detail: string): void {
    this.record({ what: 'end', end: { kind, detail: detail } });
  }

  async waitFor(matches: (observation: Observation) => boolean): Promise<Observation> {
    const there = this.observations.find(matches);
    if (there !== undefined) return there;
    const { promise, resolve } = Promise.withResolvers<Observation>();
    const waiter = { matches, resolve };
    this.#waiting.add(waiter);
    const ended = this.ended.then(({ kind, detail }) => {
      throw new Error(`the turn ended too early: ${kind} (${detail})`);
    });
    try {
      return await Promise.race([promise, ended]);
    } finally {
      this.#waiting.delete(waiter);
    }
  }
}
