import { createHash } from 'node:crypto';
import type { ConversationRef, KeyRef, NewTask, TaskRef } from './task.ts';

const ID = /^t([0-9a-z]+)-[0-9A-Za-z_-]{1,64}$/;

/**
 * Names a new task. The shard is part of the name, so that any node finds a task without asking, and the tasks of one
 * conversation share one. One key, or without a key one nonce, always gives the same name: that is what makes creating a
 * task twice harmless.
 */
export function createTaskId(
  task: Pick<NewTask, 'tenant' | 'conversation' | 'concurrency' | 'key'>,
  { nonce, shards }: { nonce: string; shards: number },
): string {
  const { tenant, conversation, concurrency, key } = task;
  const shard = pickShard([tenant, conversation ?? concurrency?.key ?? key ?? nonce], shards);
  const unique = digest([tenant, conversation ?? '', ...(key === undefined ? ['nonce', nonce] : [key])]);
  return `t${shard.toString(36)}-${unique.toString('base64url').slice(0, 32)}`;
}

/** The task that was created under a key, if one was. */
export function refOfKey(ref: KeyRef, shards: number): TaskRef {
  if (ref.key === '') throw new TypeError('key: expected a text of at least 1 character');
  return { tenant: ref.tenant, id: createTaskId(ref, { nonce: '', shards }) };
}

/** What proves that an order is for one task of one claim, without telling the claim. */
export function signatureOf({ id, claim }: { readonly id: string; readonly claim: string }): string {
  return createHash('sha1').update(`${claim} ${id}`).digest('hex');
}

/** The shard a conversation lives in, with all its tasks. */
export function getConversationShard({ tenant, conversation }: ConversationRef, shards: number): number {
  return pickShard([tenant, conversation], shards);
}

/** The shard a task lives in; throws on what is no task id. */
export function getShard(id: string): number {
  const shard = ID.exec(id)?.[1];
  if (shard === undefined) throw new TypeError(`id: '${id}' is no task id`);
  return Number.parseInt(shard, 36);
}

/** What is no id is in no shard; any will say that there is no such task. */
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
