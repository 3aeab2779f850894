import { getConversationShard, getShardOrFirst } from '../../id.ts';
import type { ConversationRef } from '../../task.ts';
import type { Retention, StoredSettings, StoreRules } from '../driver.ts';
import { toRetention } from '../store-rules.ts';
import { Calls } from './calls.ts';
import type { Connection, Reply, Subscriber } from './connection/connection.ts';
import type { Library } from './library.ts';
import { type Arguments, type OperationName, toList } from './operations.ts';
import { getGenerations, PREFIX, type RedisStoreOptions, toLimits, toTag } from './options.ts';

interface ShardsParts {
  readonly rules: StoreRules;
  readonly shiftMs: () => number;
  readonly library: Library | undefined;
}

const toTexts = ({ retentionMs, conversationRetentionMs }: Retention): readonly string[] =>
  [retentionMs, conversationRetentionMs].map((ms) => `${Math.ceil(ms)}`);

/** Runs operations on the shards of a store. */
export class Shards implements AsyncDisposable {
  /** The earlier and current shard counts, oldest first. */
  readonly generations: readonly number[];
  /** How the keys of each shard start. */
  readonly tags: readonly string[];
  readonly #calls: Calls;
  readonly #common: (format: number) => readonly string[];

  constructor(options: RedisStoreOptions, { rules, shiftMs, library }: ShardsParts) {
    this.generations = getGenerations(options);
    this.tags = Array.from({ length: this.generations.at(-1)! }, (_, shard) => toTag(options.prefix ?? PREFIX, shard));
    // Convert to text once: otherwise the library does it for every operation, while the caller waits.
    const limits = toLimits(rules, this.generations);
    let kept = toTexts(rules);
    this.#common = (format) => [`${shiftMs()}`, ...kept, `${format} ${limits}`];
    const use = (held: StoredSettings): void => {
      kept = toTexts(Object.assign(rules, toRetention(held)));
    };
    this.#calls = new Calls(options, { given: rules.given, use }, library);
  }

  /** Returns the shards that a conversation and its tasks can be in, oldest first. */
  ofConversation(ref: ConversationRef): readonly number[] {
    return [...new Set(this.generations.map((shards) => getConversationShard(ref, shards)))];
  }

  /** An id with a shard that does not exist belongs to no task; any shard will report it as unknown. */
  ofId(id: string): number {
    const shard = getShardOrFirst(id);
    return shard < this.tags.length ? shard : 0;
  }

  /** Runs an operation on the shard of a task. */
  run<N extends OperationName>(name: N, id: string, values: Arguments<N>): Promise<Reply> {
    return this.runOn(this.ofId(id), name, values);
  }

  runOn<N extends OperationName>(shard: number, name: N, values: Arguments<N>): Promise<Reply> {
    const list = toList(name, values);
    return this.#calls.call(name, this.tags[shard]!, (format) => [...this.#common(format), ...list]);
  }

  /** Runs an operation on all shards, or on these. */
  runOnAll<N extends OperationName>(
    name: N,
    values: Arguments<N>,
    shards: Iterable<number> = this.tags.keys(),
  ): Promise<Reply[]> {
    return Promise.all(Array.from(shards, (shard) => this.runOn(shard, name, values)));
  }

  /** Runs an operation on the shard of a conversation. Asks the oldest shard that it can be in first. */
  async talk<N extends OperationName>(name: N, ref: ConversationRef, values: Arguments<N>): Promise<Reply> {
    let reply: Reply = null;
    for (const shard of this.ofConversation(ref)) {
      reply = await this.runOn(shard, name, values);
      if (reply !== null && (reply as readonly Reply[])[0] !== 'not-found') return reply;
    }
    return reply;
  }

  /** Subscribes to a channel of a shard. Returns the connection of the subscription. */
  subscribe(shard: number, channel: string, subscriber: Subscriber): Promise<Connection> {
    return this.#calls.subscribe(this.tags[shard]!, channel, subscriber);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#calls[Symbol.asyncDispose]();
  }
}
