import { createHash } from 'node:crypto';
import type { ConversationRef, KeyRef, NewTask, TaskRef } from './task.ts';

const ID = /^t([0-9a-z]+)-[0-9A-Za-z_-]{1,64}$/;

/**
 * Creates the id of a new task. The id contains the shard, so any node can find the task without a lookup; the tasks of
 * one conversation share a shard. The same key, or without a key the same nonce, always gives the same id. This makes
 * creating a task twice harmless.
 */
export function createTaskId(
  task: Pick<NewTask, 'tenant' | 'conversation' | 'key'>,
  { nonce, shards }: { nonce: string; shards: number },
): string {
  const { tenant, conversation, key } = task;
  const shard = pickShard([tenant, conversation ?? key ?? nonce], shards);
  const unique = digest([tenant, conversation ?? '', ...(key === undefined ? ['nonce', nonce] : [key])]);
  return `t${shard.toString(36)}-${unique.toString('base64url').slice(0, 32)}`;
}

/** Returns the reference of the task that is created under a key. */
export function refOfKey(ref: KeyRef, shards: number): TaskRef {
  if (ref.key === '') throw new TypeError('key: expected a text of at least 1 character');
  return { tenant: ref.tenant, id: createTaskId(ref, { nonce: '', shards }) };
}

/** Proves that an order is for one task of one claim, without revealing the claim. */
export function signOrder({ id, claim }: { readonly id: string; readonly claim: string }): string {
  return createHash('sha1').update(`${claim} ${id}`).digest('hex');
}

/** Returns the shard of a conversation and all its tasks. */
export function getConversationShard({ tenant, conversation }: ConversationRef, shards: number): number {
  return pickShard([tenant, conversation], shards);
}

/** Returns the shard of a task. Throws `TypeError` on an invalid task id. */
export function getShard(id: string): number {
  const shard = ID.exec(id)?.[1];
  if (shard === undefined) throw new TypeError(`id: '${id}' is not a task id`);
  return Number.parseInt(shard, 36);
}

/** Like `getShard`, but returns the first shard for an invalid id; any shard will report such a task as unknown. */
export function getShardOrFirst(id: string): number {
  try {
    return getShard(id);
  } catch {
    return 0;
  }
}

function pickShard(parts: readonly string[], shards: number): number {
  return digest(parts).readUInt32BE(0) % shards;
}

function digest(parts: readonly string[]): Buffer {
  return createHash('sha256').update(JSON.stringify(parts)).digest();
}
