import type { Policy } from '@whoa/core';
import { createVirtualWorld } from '@whoa/core/testing';
import { createMemoryStore, type TaskStore } from '@whoa/tasks';
import type { ClaimRef } from '@whoa/tasks/store';
import { checkStoreModel, createRedisStoreKind } from '@whoa/tasks/testing';
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TakeAnswer } from '../../packages/tasks/src/delivery.ts';
import { type BorrowedServer, borrowRedis } from '../servers/borrow.ts';

let server: BorrowedServer;
beforeAll(async () => {
  server = await borrowRedis();
});
afterAll(() => server[Symbol.asyncDispose]());

test('random histories on Redis agree with the model', () =>
  checkStoreModel(fc, createRedisStoreKind('redis', { url: server.url }), { runs: 300 }));

const TENANTS = ['acme', 'other'];
const LEASE_MS = 100_000;
/** No number of these steps comes near a deadline of the store: the two clocks may differ by some milliseconds. */
const STEP_MS = 1_100;
const LEAP_MS = 40_000;
const RULES = { maxJournalBytes: 150, maxAttempts: 2, maxReady: 6 };
const TIMES =
  /^(now|at|until|nextAt|createdAt|startedAt|endedAt|changedAt|abortAt|killAt|stageAt|watchedUntil|notBefore)$/;

/** What a history has made so far, the same on both stores. */
class Made {
  readonly ids: string[] = [];
  readonly claims: ClaimRef[] = [];
  readonly numbers = new Map<string, number>();

  id(i: number): string {
    return this.ids[i % Math.max(1, this.ids.length)] ?? 't0-nothing';
  }

  claim(i: number): ClaimRef {
    const none = { id: this.id(i), epoch: 1, session: 'none', claim: 'none' };
    // Most often one of the latest.
    return this.claims.at(-1 - (i % Math.max(1, this.claims.length))) ?? none;
  }

  tookBy(session: string, answer: TakeAnswer): void {
    if (answer.answer !== 'taken') return;
    if (answer.repeat || answer.tasks.length > 0) this.numbers.set(session, (this.numbers.get(session) ?? 1) + 1);
    if (!answer.repeat) this.claims.push(...answer.tasks.map(({ claim }) => claim));
  }
}

type Step = (store: TaskStore, made: Made, name: string) => Promise<unknown>;

/** Steps of one kind, which say what they were made of when a history fails. */
function stepsOf<T>(kind: string, made: fc.Arbitrary<T>, stepOf: (value: T) => Step): fc.Arbitrary<Step> {
  return made.map((value) =>
    Object.assign(stepOf(value), { [fc.toStringMethod]: () => `${kind}(${JSON.stringify(value)})` }),
  );
}

const index = fc.nat(5);
const tenant = fc.constantFrom(...TENANTS);
const session = fc.constantFrom('s1', 's2', 's3');
const policy = fc.constantFrom<Policy>('replace', 'queue', 'steer', 'reject');
const mode = fc.constantFrom('graceful', 'now', 'kill');
const status = fc.constantFrom('success', 'failed', 'cancelled');
const some = fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 2 });

const usage = fc.option(fc.record({ inputTokens: fc.nat(), outputTokens: fc.nat(), complete: fc.boolean() }));
const activity = fc
  .record({ turns: fc.nat(), calls: fc.nat(), questions: fc.nat(2), usage })
  .map(({ usage: used, ...counts }) => (used === null ? counts : { ...counts, usage: used }));

const wanted = fc.record({
  tenant,
  policy,
  agent: fc.constantFrom('a', 'b'),
  kind: fc.constantFrom('plain', 'plain', 'talk', 'talk', 'held', 'later', 'home'),
  // Seldom the same: of tasks that became ready in one moment any may be first.
  priority: fc.integer({ min: -100, max: 100 }),
  input: fc.nat(50),
  nonce: fc.nat(3),
  context: fc.constantFrom(undefined, undefined, { user: 'ann' }, { user: 'bob', locale: 'de' }),
});
const creates = stepsOf('create', wanted, ({ policy: by, kind, input, nonce, ...rest }) => {
  const kinds = {
    plain: {},
    talk: { conversation: 'c' },
    held: { conversation: 'c', holdMs: 8_000 },
    later: { notBefore: Date.UTC(2100) },
    home: { worker: 'home' },
  };
  return async (store, made) => {
    // Sometimes again with the same nonce, under the same key or under none, as after a lost answer.
    const key = nonce > 0 ? { key: `k${input}` } : {};
    // Texts of many lengths: small inputs and titles are kept in other places than long ones.
    const task = { ...rest, input: input % 2 === 0 ? 'wörd '.repeat(input) : input, ...kinds[kind], ...key };
    const receipt = await store.create(task, { policy: by, nonce: `n${nonce || input}` });
    if (receipt.answer === 'created' && !made.ids.includes(receipt.task.id)) made.ids.push(receipt.task.id);
    return receipt;
  };
});

const takes = stepsOf(
  'take',
  fc.tuple(session, fc.nat(3), fc.constantFrom(['a'], ['b'], ['a', 'b']), fc.nat(9)),
  ([by, limit, agents, back]) =>
    async (store, made, name) => {
      const number = Math.max(1, (made.numbers.get(by) ?? 1) - (back === 0 ? 1 : 0));
      const request = { domain: 0, session: by, worker: `w-${by}`, leaseMs: LEASE_MS, claim: name };
      const answer = await store.take({ ...request, number, agents, limit: limit + 1 });
      made.tookBy(by, answer);
      return answer;
    },
);

const claims = stepsOf('claim', fc.tuple(index, session), ([i, by]) => async (store, made, name) => {
  const request = { session: by, worker: `w-${by}`, leaseMs: LEASE_MS, claim: name };
  const answer = await store.claim(made.id(i), request);
  if (answer.answer === 'claimed') made.claims.push(answer.claim);
  return answer;
});

const beats = stepsOf(
  'beat',
  fc.tuple(session, fc.nat(2), fc.nat(3), index),
  ([by, count, orderNumber, i]) =>
    (store, made) =>
      store.beat({ domain: 0, session: by, count, confirmed: [{ ...made.claim(i), orderNumber }] }),
);

/** Everything that can be done to a few tasks, by a few workers. */
const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: creates, weight: 4 },
  { arbitrary: takes, weight: 4 },
  { arbitrary: claims, weight: 2 },
  { arbitrary: beats, weight: 2 },
  stepsOf(
    'held',
    session,
    (by) => async (store) => (await store.held({ domain: 0, session: by })).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
  ),
  stepsOf('sweep', fc.integer({ min: 1, max: 3 }), (limit) => (store) => store.sweep({ limit: limit * 30 })),
  stepsOf(
    'append',
    fc.tuple(index, fc.nat(3), some, some, fc.nat(60), fc.boolean(), fc.option(activity, { nil: undefined })),
    ([i, after, done, replaces, size, progress, did]) =>
      (store, made) =>
        store.append(made.claim(i), {
          after,
          events: size < 10 ? [] : ['ñ'.repeat(size)],
          done,
          replaces,
          progress,
          ...(did !== undefined && { activity: did }),
        }),
  ),
  stepsOf('release', index, (i) => (store, made) => store.release(made.claim(i))),
  stepsOf(
    'finish',
    fc.tuple(index, status, fc.nat(3)),
    ([i, end, says]) =>
      (store, made) =>
        store.finish(made.claim(i), {
          status: end as 'success',
          answer: 'a'.repeat(says * 40),
          ...(says === 1 && { history: [end] }),
          ...(says > 1 && { said: [end, says] }),
        }),
  ),
  stepsOf(
    'cancel',
    fc.tuple(index, tenant, mode, fc.boolean()),
    ([i, of, hard, undo]) =>
      (store, made) =>
        store.cancel({ tenant: of, id: made.id(i) }, { by: 'b' }, { mode: hard as 'now', undo }),
  ),
  stepsOf(
    'cancelConversation',
    fc.tuple(tenant, mode),
    ([of, hard]) =>
      (store) =>
        store.cancel({ tenant: of, conversation: 'c' }, { kind: 'budget' }, { mode: hard as 'now' }),
  ),
  stepsOf(
    'send',
    fc.tuple(index, tenant, fc.nat(9)),
    ([i, of, nonce]) =>
      (store, made) =>
        store.send({ tenant: of, id: made.id(i) }, { type: 'steer', message: 'm' }, { nonce: `n${nonce}` }),
  ),
  stepsOf(
    'read',
    fc.tuple(index, tenant),
    ([i, of]) =>
      (store, made) =>
        store.read({ tenant: of, id: made.id(i) }, { watchMs: 30_000 }),
  ),
  stepsOf(
    'list',
    fc.tuple(tenant, fc.constantFrom(undefined, 'init', 'success'), fc.boolean()),
    ([of, wanted, talks]) =>
      (store) =>
        store.list({
          tenant: of,
          limit: 3,
          ...(wanted !== undefined && { status: wanted as 'init' }),
          ...(talks && { conversation: 'c' }),
        }),
  ),
);

const history = fc.array(fc.record({ step, leaps: fc.nat(7) }), { minLength: 5, maxLength: 40, size: 'max' });

test('whatever is done to tasks, sessions and conversations, Redis and memory answer the same and end up the same', async () => {
  let steps = 0;
  const property = fc.asyncProperty(history, async (sequence) => {
    const world = createVirtualWorld();
    const kind = createRedisStoreKind('redis', { url: server.url }, { shift: () => world.clock.now() - Date.now() });
    await using harness = await kind.createHarness();
    await using redis = await harness.open(RULES);
    await using memory = createMemoryStore({ world, ...RULES });
    const [ours, theirs] = [new Made(), new Made()];
    for (const [i, one] of sequence.entries()) {
      steps++;
      await world.clock.advance(one.leaps === 0 ? LEAP_MS : STEP_MS);
      const answer = await answerOf(one.step(redis, ours, `c${i}`));
      expect(answer).toEqual(await answerOf(one.step(memory, theirs, `c${i}`)));
      expect(await everything(redis, ours.ids)).toEqual(await everything(memory, theirs.ids));
    }
  });
  await fc.assert(property, { numRuns: 200, seed: 11 });
  console.log({ steps });
});

async function everything(store: TaskStore, ids: readonly string[]): Promise<unknown> {
  const refs = TENANTS.flatMap((of) => ids.map((id) => ({ tenant: of, id })));
  const records = await Promise.all(refs.map((ref) => store.get(ref)));
  const journals = await Promise.all(refs.map((ref) => store.read(ref)));
  const talks = await Promise.all(TENANTS.map((of) => store.conversation({ tenant: of, conversation: 'c' })));
  return timeless({ records, journals, talks });
}

async function answerOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return timeless(await work);
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}

/** The same without times: the two have clocks of their own. */
function timeless(value: unknown): unknown {
  if (value === undefined) return undefined;
  const text = JSON.stringify(value, (key, part: unknown) => {
    if (key === 'next' && typeof part === 'string') return part.slice(part.indexOf('/'));
    return TIMES.test(key) && typeof part === 'number' ? 0 : part;
  });
  return JSON.parse(text);
}
