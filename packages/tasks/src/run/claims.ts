import type { Clock } from '@whoa/core';
import type { Claim } from '../store.ts';

/** What a claim brought, and what whoever made it must know besides. */
export type MadeClaim = Claim & {
  /** When the store was asked: a lease counts from then, the answer may have taken long. */
  readonly askedAt: number;
  /** Something was told of the task after the store had decided. */
  readonly isOutdated: boolean;
};

interface UnderWay {
  claims: number;
  isOutdated: boolean;
}

/**
 * Claims whose answers are on their way. What is ordered between the store's decision and the arrival of its answer stands
 * in no answer, and nobody works on the task yet who could hear it: so it is noted, and the store is asked once more.
 */
export class Claims {
  readonly #clock: Clock;
  readonly #underWay = new Map<string, UnderWay>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async make(id: string, claim: () => Promise<Claim>): Promise<MadeClaim> {
    const entry = this.#underWay.get(id) ?? { claims: 0, isOutdated: false };
    this.#underWay.set(id, entry);
    entry.claims++;
    const askedAt = this.#clock.now();
    try {
      const answer = await claim();
      return { ...answer, askedAt, isOutdated: entry.isOutdated };
    } finally {
      if (--entry.claims === 0) this.#underWay.delete(id);
    }
  }

  /** Something was told of a task, or may have happened to any. */
  outdate(id?: string): void {
    for (const entry of id === undefined ? this.#underWay.values() : [this.#underWay.get(id)]) {
      if (entry !== undefined) entry.isOutdated = true;
    }
  }
}
