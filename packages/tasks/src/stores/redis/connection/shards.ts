import { getConversationShard, getShardOrFirst } from '../../../id.ts';
import type { ConversationRef } from '../../../task.ts';

/** Which shards things are in, by how many shards there were, oldest first. */
export class Shards {
  readonly #generations: readonly number[];

  constructor(generations: readonly number[]) {
    this.#generations = generations;
  }

  /** Those that a conversation and its tasks can be in. */
  ofConversation(ref: ConversationRef): readonly number[] {
    return [...new Set(this.#generations.map((shards) => getConversationShard(ref, shards)))];
  }

  /** An id that names a shard too many is of no task here; any shard will say so. */
  ofId(id: string): number {
    const shard = getShardOrFirst(id);
    return shard < this.#generations.at(-1)! ? shard : 0;
  }
}
