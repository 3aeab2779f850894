import type { Observation, Turn, TurnEnd } from './adapter.ts';

/** Records what an adapter sees of a turn. */
export class TurnLog implements Turn {
  readonly observations: Observation[] = [];
  /** The id by which other connections can name it, once that is known. */
  readonly named: PromiseWithResolvers<string> = Promise.withResolvers();
  readonly #end = Promise.withResolvers<TurnEnd>();
  readonly ended: Promise<TurnEnd> = this.#end.promise;
  readonly #readers = new Set<(observation: Observation) => void>();

  constructor() {
    this.named.promise.catch(() => {});
  }

  get hasEnded(): boolean {
    return this.observations.some(({ what }) => what === 'end');
  }

  id(): Promise<string> {
    return this.named.promise;
  }

  /** Writes down one more thing. A second end is written down too, and changes nothing else. */
  record(observation: Observation): void {
    this.observations.push(observation);
    for (const read of this.#readers) read(observation);
    if (observation.what === 'end') this.#end.resolve(observation.end);
  }

  end(kind: TurnEnd['kind'], detail: string): void {
    this.record({ what: 'end', end: { kind, detail } });
  }

  async waitFor(matches: (observation: Observation) => boolean): Promise<Observation> {
    const there = this.observations.find(matches);
    if (there !== undefined) return there;
    const { promise, resolve } = Promise.withResolvers<Observation>();
    const read = (observation: Observation): void => {
      if (matches(observation)) resolve(observation);
    };
    this.#readers.add(read);
    const ended = this.ended.then(({ kind, detail }) => {
      throw new Error(`the turn ended too early: ${kind} (${detail})`);
    });
    try {
      return await Promise.race([promise, ended]);
    } finally {
      this.#readers.delete(read);
    }
  }
}
