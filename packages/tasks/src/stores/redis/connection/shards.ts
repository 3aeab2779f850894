import { getConversationShard, getShardOrFirst } from '../../../id.ts';
import type { ConversationRef } from '../../../task.ts';

/** Finds shards, by the earlier and current shard counts, oldest first. */
export class Shards {
  readonly #generations: readonly number[];

  constructor(generations: readonly number[]) {
    this.#generations = generations;
  }

  /** Returns the shards that a conversation and its tasks can be in. */
  ofConversation(ref: ConversationRef): readonly number[] {
    return [...new Set(this.#generations.map((shards) => getConversationShard(ref, shards)))];
  }

  /** An id with a shard that does not exist belongs to no task; any shard will report it as unknown. */
  ofId(id: string): number {
    const shard = getShardOrFirst(id);
    return shard < this.#generations.at(-1)! ? shard : 0;
  }
}
