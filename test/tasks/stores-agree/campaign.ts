import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { StoreOptions } from '@whoa/tasks/store';
import * as fc from 'fast-check';
import { canonical, look, lookClosely, toResult, type View } from './compare.ts';
import { HISTORIES, type Step } from './history.ts';
import { Made, type Mode, type Request, TENANTS } from './made.ts';
import { type Contestant, openMemory, openPostgres, openSqlite } from './stores.ts';
import { SharedTime } from './time.ts';

const RULES: Readonly<Record<Mode, StoreOptions>> = {
  open: { maxJournalBytes: 100, maxReady: 2 },
  capped: { maxJournalBytes: 100, maxReady: 2, maxRunningPerTenant: 2, maxRunningPerAgent: 2 },
  'ready-queues': { maxReady: 4, maxRunningPerAgent: 3 },
};
/** Most histories have no limits on running tasks. */
const MODES: readonly Mode[] = ['open', 'open', 'open', 'capped', 'open', 'ready-queues'];
/** How often a failing history is run again, to find a shorter one. */
const MAX_TRIES = 300;
const MAX_FAILURES = 5;
const START = Date.UTC(2030, 0, 1);

export interface AgreeOptions {
  readonly postgres: string;
  readonly histories: number;
  /** The seed of the first history; the next has the next one. */
  readonly seed: number;
  /** How many histories run at the same time. */
  readonly parallel?: number;
  /** Compare everything after each step, not only sometimes. */
  readonly isThorough?: boolean;
  /** Gets the text of each failure: its seed, the shortest history that fails, and why. */
  readonly log: (text: string) => void;
}

export interface AgreeReport {
  readonly histories: number;
  readonly steps: number;
  /** How often each result occurred: a campaign that never reaches a case cannot find its bugs. */
  readonly results: Readonly<Record<string, number>>;
  /** Seeds of histories that failed. */
  readonly failed: readonly number[];
}

/**
 * Runs random histories on all stores, and compares the stores after every step. A seed always gives the same history.
 */
export async function runAgreement(options: AgreeOptions): Promise<AgreeReport> {
  const { histories, seed, parallel = 2 } = options;
  const report = { histories: 0, steps: 0, results: {} as Record<string, number>, failed: [] as number[] };
  const run = async (index: number): Promise<void> => {
    await using comparisons = new Comparisons(options, `${index}`);
    while (report.histories < histories && report.failed.length < MAX_FAILURES) {
      const own = seed + report.histories++;
      const mode = MODES[own % MODES.length]!;
      const comparison = await comparisons.get(mode);
      let tries = 0;
      // Shrinks a failing history until it is short enough, or `MAX_TRIES` is reached.
      const property = fc.asyncProperty(HISTORIES[mode], async (steps) => {
        if (tries++ < MAX_TRIES) await comparison.run(steps);
      });
      const checked = await fc.check(property, { seed: own, numRuns: 1 });
      report.steps += comparison.results.length;
      for (const result of comparison.results.splice(0)) report.results[result] = (report.results[result] ?? 0) + 1;
      if (!checked.failed) continue;
      report.failed.push(own);
      options.log(toText(own, checked.counterexample![0], checked.errorInstance));
    }
  };
  await Promise.all(Array.from({ length: Math.min(parallel, histories) }, (_, index) => run(index)));
  return report;
}

/** The stores for each mode, opened when they are first needed. */
class Comparisons implements AsyncDisposable {
  readonly #options: AgreeOptions;
  readonly #name: string;
  readonly #comparisons = new Map<Mode, Comparison>();

  constructor(options: AgreeOptions, name: string) {
    this.#options = options;
    this.#name = name;
  }

  async get(mode: Mode): Promise<Comparison> {
    const known = this.#comparisons.get(mode);
    if (known !== undefined) return known;
    const time = new SharedTime();
    const options = { rules: RULES[mode], time, name: `${mode}_${this.#name}` };
    const { postgres, isThorough = false } = this.#options;
    const stores = [
      await openMemory(options, canonical),
      await openSqlite(options, canonical),
      // It serves tenants by name, not by how long they waited.
      ...(mode === 'ready-queues' ? [] : [await openPostgres({ ...options, url: postgres }, canonical)]),
    ];
    const comparison = new Comparison(mode, { stores, time, isThorough });
    this.#comparisons.set(mode, comparison);
    return comparison;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { stores } of this.#comparisons.values()) {
      await Promise.all(stores.map((one) => one[Symbol.asyncDispose]()));
    }
  }
}

class Comparison {
  readonly stores: readonly Contestant[];
  /** The results of each step. */
  readonly results: string[] = [];
  readonly #mode: Mode;
  readonly #time: SharedTime;
  readonly #isThorough: boolean;
  /** The views of the first store at the last comparison. */
  #views: readonly View[] = [];

  constructor(
    mode: Mode,
    { stores, time, isThorough }: { stores: readonly Contestant[]; time: SharedTime; isThorough: boolean },
  ) {
    this.#mode = mode;
    this.stores = stores;
    this.#time = time;
    this.#isThorough = isThorough;
  }

  async run(steps: readonly Step[]): Promise<void> {
    await Promise.all(this.stores.map((one) => one.empty()));
    for (const { waiters, heard } of this.stores) {
      waiters.clear();
      heard.changes.length = heard.rung.length = 0;
    }
    this.#views = [];
    const made = new Made(this.#mode);
    await this.#setTime(made, START);
    for (const [i, step] of steps.entries()) {
      made.step = i + 1;
      await this.#runStep(step, made);
    }
    await this.#look(made, await look(this.stores[0]!.store, TENANTS), TENANTS);
    await this.#compare('everything', ({ store }) => lookClosely(store, made));
    for (const one of this.stores) {
      assert.deepEqual(await one.findProblems(), [], `${one.name} contradicts itself after step ${made.step}`);
    }
  }

  async #runStep({ passes, plan, isLost, isCloselyLookedAt }: Step, made: Made): Promise<void> {
    if (passes !== 0) await this.#setTime(made, made.now + passes);
    this.#time.nonce = `nonce ${made.step}`;
    const request = plan(made);
    if (!request.isNew) made.requests.push(request);
    await this.#ask(request, made);
    if (isLost) await this.#ask(request, made);
    if (isCloselyLookedAt || this.#isThorough) {
      await this.#compare(`everything after step ${made.step}`, ({ store }) => lookClosely(store, made));
    }
  }

  async #ask({ call, learn, park }: Request, made: Made): Promise<void> {
    const result = await this.#compare(`the result of step ${made.step}`, ({ store }) => toResult(call(store)));
    this.results.push(describeResult(result));
    const views = await look(this.stores[0]!.store, TENANTS);
    // A change that only another store made is seen after the next step, or at the end.
    if (this.#isThorough || !isDeepStrictEqual(views, this.#views)) await this.#look(made, views);
    const took = park?.(result as never);
    if (took !== undefined) for (const { waiters } of this.stores) waiters.recordTake({ ...took, at: made.now });
    if (result !== undefined) learn?.(result as never);
  }

  /** Compares each store's data with the first store's, and the hints since the last comparison. */
  async #look(
    made: Made,
    views: readonly View[],
    tenants: readonly string[] = TENANTS.filter(isUsed(views)),
  ): Promise<void> {
    await this.#compare(`tasks after step ${made.step}`, ({ store }) => look(store, tenants));
    await this.#compare(`hints of step ${made.step}`, async (one) => {
      await one.settle();
      return one.heard.changes.splice(0).toSorted();
    });
    const before = made.tasks;
    this.#views = views;
    made.tasks = views.flatMap(({ tasks }) => tasks);
    for (const { name, heard, waiters } of this.stores) {
      const missed = waiters.findMissedRing({ before, after: made.tasks, now: made.now }, heard.rung.splice(0));
      assert.equal(missed, undefined, `${name} told no worker in step ${made.step} about`);
    }
  }

  async #setTime(made: Made, now: number): Promise<void> {
    if (now < made.now) made.hasGoneBack = true;
    made.now = this.#time.now = now;
    await Promise.all(this.stores.map((one) => one.setTime()));
  }

  /** Sends the same request to every store, and returns the first store's result. */
  async #compare(what: string, ask: (one: Contestant) => Promise<unknown>): Promise<unknown> {
    const results = await Promise.all(this.stores.map(ask));
    const [first] = results;
    for (const [i, other] of results.entries()) {
      if (isDeepStrictEqual(other, first) || canonical(other) === canonical(first)) continue;
      const name = this.stores[i]!.name;
      const [actual, expected] = [other, first].map((result): unknown => JSON.parse(canonical(result)));
      assert.deepEqual(actual, expected, `${what}: ${name} (actual) differs from memory (expected)`);
    }
    return results[0];
  }
}

/** Returns whether a tenant has any data. The first tenant always counts as used. */
function isUsed(views: readonly View[]): (tenant: string, i: number) => boolean {
  return (_tenant, i) => i === 0 || views[i]!.tasks.length > 0 || views[i]!.conversation !== undefined;
}

function describeResult(result: unknown): string {
  const {
    result: kind,
    throws,
    reclaimed = 0,
  } = (result ?? {}) as { result?: string; throws?: string; reclaimed?: number };
  return throws ?? kind ?? (reclaimed > 0 ? 'reclaimed' : 'read');
}

function toText(seed: number, steps: readonly Step[], error: unknown): string {
  const lines = steps.map(
    ({ passes, plan, isLost }, i) => `${i + 1}. after ${passes} ms ${fc.stringify(plan)}${isLost ? ', twice' : ''}`,
  );
  const again = `npm run long -- stores-agree 1 ${seed} --thorough`;
  return [`seed ${seed}, again with ${again}`, ...lines, (error as Error).message, ''].join('\n');
}
