import {
  type Migrator,
  type MigratorState,
  type OlderWorkers,
  PART_ROWS,
  type Part,
} from '../../migration/migrator.ts';
import { Calls } from './calls.ts';
import type { Reply } from './connection/connection.ts';
import { FORMAT_CHANGES } from './format-changes.ts';
import { generationsOf, PREFIX, type RedisStoreOptions, tagOf } from './options.ts';
import { createPartScript, SCRIPTS, type Script } from './scripts.ts';

/** Creates the migrator of a prefix. It connects on first use. */
export function createRedisMigrator(options: RedisStoreOptions): Migrator {
  return new RedisMigrator(options);
}

/** Every shard is migrated by itself, one after the other. */
class RedisMigrator implements Migrator {
  readonly store: string;
  readonly changes: typeof FORMAT_CHANGES = FORMAT_CHANGES;
  readonly #calls: Calls;
  readonly #tags: readonly string[];
  readonly #limits: string;

  constructor(options: RedisStoreOptions) {
    const generations = generationsOf(options);
    const { prefix = PREFIX } = options;
    this.store = `Redis, prefix '${prefix}'`;
    this.#tags = Array.from({ length: generations.at(-1)! }, (_, shard) => tagOf(prefix, shard));
    this.#limits = `0 0 0 ${generations.join(',')}`;
    this.#calls = new Calls(options, {
      message: () => {},
      lost: () => {},
      slotGone: () => {},
      given: {},
      settings: () => {},
    });
  }

  async state(): Promise<MigratorState> {
    const shards = (await this.#callAll(SCRIPTS.steps, [])) as (readonly [string, readonly string[]])[];
    const started = shards.map(
      ([, flat]) => new Map(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1]]] : []))),
    );
    const names = new Set(started.flatMap((steps) => [...steps.keys()]));
    return {
      format: Math.min(...shards.map(([format]) => Number(format))),
      steps: new Map([...names].map((name) => [name!, started.every((steps) => steps.get(name) === 'done')])),
    };
  }

  /** The layout is written on connecting. */
  async begin(): Promise<void> {
    await this.state();
  }

  async runPart(name: string): Promise<Part> {
    const step = this.changes.flatMap(({ before, after }) => [...before, ...after]).find((one) => one.name === name)!;
    const script = createPartScript(step.fill);
    let all = 0;
    for (const tag of this.#tags) {
      const [isDone, rows] = (await this.#call(script, tag, [name, PART_ROWS])) as [string, number];
      all += rows;
      if (isDone !== '1') return { rows: all, isDone: false };
    }
    return { rows: all, isDone: true };
  }

  async olderWorkers(format: number): Promise<OlderWorkers> {
    const found = (await this.#callAll(SCRIPTS.olderWorkers, [format])) as (readonly (readonly string[])[])[];
    const [holding, waiting] = [0, 1].map((i) => [...new Set(found.flatMap((shard) => shard[i]!))].toSorted());
    return { holding: holding!, waiting: waiting! };
  }

  /** A shard that has the new format while others do not is well: every operation goes by that of its shard. */
  async finish(format: number): Promise<readonly string[]> {
    const { holding } = await this.olderWorkers(format);
    if (holding.length > 0) return holding;
    const after = this.changes.find(({ to }) => to === format)?.after ?? [];
    const names = after.map(({ name }) => name);
    for (const tag of this.#tags.toReversed()) {
      const found = (await this.#call(SCRIPTS.finishFormat, tag, [format, ...names])) as readonly string[];
      if (found.length > 0) return found;
    }
    return [];
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#calls[Symbol.asyncDispose]();
  }

  #callAll(script: Script, values: readonly (string | number)[]): Promise<Reply[]> {
    return Promise.all(this.#tags.map((tag) => this.#call(script, tag, values)));
  }

  #call(script: Script, tag: string, values: readonly (string | number)[]): Promise<Reply> {
    return this.#calls.call(script, tag, (format) => [0, 0, 0, `${format} ${this.#limits}`, ...values]);
  }
}
