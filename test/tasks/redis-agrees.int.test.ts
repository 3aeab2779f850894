import type { Policy } from '@whoa/core';
import { createVirtualWorld } from '@whoa/core/testing';
import { createMemoryStore, type TaskStore } from '@whoa/tasks';
import { checkStoreModel, createRedisStoreKind } from '@whoa/tasks/testing';
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type RedisServer, startRedis } from '../servers/redis.ts';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis({ appendfsync: 'none' });
});
afterAll(() => server[Symbol.asyncDispose]());

test('random histories on Redis agree with the model', () =>
  checkStoreModel(fc, createRedisStoreKind('redis', { url: server.url }), { runs: 300 }));

const TENANT = 'acme';
const LINE = { tenant: TENANT, conversation: 'c' };
const LEASE_MS = 1_000_000;
const JOURNAL_BYTES_MAX = 150;
const TIMES = new Set(['now', 'at', 'until', 'leaseUntil', 'dueAt', 'createdAt', 'startedAt', 'endedAt', 'abortAt']);

type Step = (store: TaskStore, ids: string[]) => Promise<unknown>;

/** Everything that can be done to a few tasks of one conversation. */
const step: fc.Arbitrary<Step> = (() => {
  const index = fc.nat(5);
  const epoch = fc.integer({ min: 1, max: 3 });
  const policy = fc.constantFrom<Policy>('replace', 'queue', 'steer', 'reject');
  const how = fc.constantFrom('graceful', 'now', 'kill');
  const status = fc.constantFrom('success', 'failed', 'cancelled');
  const some = fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 2 });
  const id = (ids: string[], i: number): string => ids[i % Math.max(1, ids.length)] ?? 't0-nothing';
  return fc.oneof(
    // Sometimes again with the same nonce, under the same key or under none, as after a lost answer.
    fc.tuple(policy, fc.boolean(), fc.boolean(), fc.nat(50), fc.nat(3)).map(
      ([by, talks, holds, input, nonce]): Step =>
        async (store, ids) => {
          const line = talks ? { conversation: 'c', ...(holds && { holdMs: LEASE_MS }) } : {};
          const named = { ...(nonce > 0 && { key: `k${input}` }), ...line };
          const wanted = { tenant: TENANT, agent: 'a', input, worker: 'home', ...named };
          const receipt = await store.create(wanted, { policy: by, nonce: `n${nonce || input}` });
          if (receipt.answer === 'created' && !ids.includes(receipt.task.id)) ids.push(receipt.task.id);
          return receipt;
        },
    ),
    index.map(
      (i): Step =>
        (store, ids) =>
          store.claim(id(ids, i), 'w', LEASE_MS),
    ),
    fc.tuple(index, epoch).map(
      ([i, e]): Step =>
        (store, ids) =>
          store.renew(id(ids, i), e, 2 * LEASE_MS),
    ),
    fc.tuple(index, epoch, fc.nat(3), some, some, fc.nat(60)).map(
      ([i, e, after, done, replaces, size]): Step =>
        (store, ids) =>
          store.append(id(ids, i), e, { after, events: ['ñ'.repeat(size)], done, replaces }),
    ),
    fc.tuple(index, epoch).map(
      ([i, e]): Step =>
        (store, ids) =>
          store.release(id(ids, i), e),
    ),
    fc.tuple(index, epoch, status, fc.nat(3)).map(
      ([i, e, end, says]): Step =>
        (store, ids) =>
          store.finish(id(ids, i), e, {
            status: end as 'success',
            answer: 'a',
            ...(says === 1 && { history: [end] }),
            ...(says > 1 && { said: [end, says] }),
          }),
    ),
    fc.tuple(index, how, fc.boolean()).map(
      ([i, hard, undo]): Step =>
        (store, ids) =>
          store.cancel({ tenant: TENANT, id: id(ids, i) }, { by: 'b' }, { how: hard as 'now', undo }),
    ),
    how.map(
      (hard): Step =>
        (store) =>
          store.cancel(LINE, { kind: 'budget' }, { how: hard as 'now' }),
    ),
    fc.tuple(index, fc.nat(9)).map(
      ([i, nonce]): Step =>
        (store, ids) =>
          store.send({ tenant: TENANT, id: id(ids, i) }, { type: 'steer', message: 'm' }, { nonce: `n${nonce}` }),
    ),
  );
})();

test('whatever is done to a conversation, Redis and memory answer the same and end up the same', async () => {
  let steps = 0;
  const property = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40, size: 'max' }), async (sequence) => {
    await using redis = await openRedis();
    await using memory = createMemoryStore({ world: createVirtualWorld(), journalBytesMax: JOURNAL_BYTES_MAX });
    const [ours, theirs]: [string[], string[]] = [[], []];
    for (const one of sequence) {
      steps++;
      expect(await answerOf(one(redis, ours))).toEqual(await answerOf(one(memory, theirs)));
      expect(await everything(redis, ours)).toEqual(await everything(memory, theirs));
    }
  });
  await fc.assert(property, { numRuns: 200, seed: 11 });
  console.log({ steps });
});

async function openRedis(): Promise<TaskStore> {
  const harness = await createRedisStoreKind('redis', { url: server.url }).createHarness();
  return harness.open({ journalBytesMax: JOURNAL_BYTES_MAX });
}

async function everything(store: TaskStore, ids: readonly string[]): Promise<unknown> {
  const records = await Promise.all(ids.map((id) => store.get({ tenant: TENANT, id })));
  const journals = await Promise.all(ids.map((id) => store.read({ tenant: TENANT, id })));
  return timeless({ records, journals, line: await store.conversation(LINE) });
}

async function answerOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return timeless(await work);
  } catch (error) {
    return (error as { code?: string }).code;
  }
}

/** The same without times: the two have clocks of their own. */
function timeless(value: unknown): unknown {
  if (value === undefined) return undefined;
  const text = JSON.stringify(value, (key, part: unknown) =>
    TIMES.has(key) || key === 'killAt' || key === 'changedAt' ? 0 : part,
  );
  return JSON.parse(text);
}
