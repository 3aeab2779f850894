import { createAgent, sleep } from '@whoa/core';
import { type Planner, reply } from '@whoa/core/model';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, expectTypeOf, test } from 'vitest';
import { alterStore } from '../../../../test/tasks/altered-store.ts';
import { StoreBusyError } from '../errors.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import { createRunner } from '../run/store-runner.ts';
import { type FollowEvent, followTask } from './follow.ts';

const TASK = { tenant: 'acme', agent: 'assistant', input: 'hello' };
const WORDS = ['one ', 'two ', 'three'];

/** Writes a word a second. */
const slow: Planner = {
  async next(_history, { token, emit }) {
    for (const text of WORDS) {
      emit({ type: 'text', text });
      await sleep(1_000, { clock: token.clock, token });
    }
    return reply(WORDS.join(''));
  },
};

function setUp() {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  const runner = createRunner({
    store,
    agents: { assistant: createAgent({ name: 'assistant', planner: slow, world }) },
    world,
  });
  return { world, store, runner };
}

async function collect(following: AsyncIterable<FollowEvent>): Promise<FollowEvent[]> {
  const seen: FollowEvent[] = [];
  for await (const one of following) seen.push(one);
  return seen;
}

const getTypes = (seen: readonly FollowEvent[]): string[] =>
  seen.map((one) => (one.type === 'entry' ? one.event.type : one.type));

test('a task that was started is followed by its id from its first entry to its outcome', async () => {
  const { world, store, runner } = setUp();
  const { response, ...ref } = await runner.start(TASK);
  const following = collect(followTask(store, ref, { world }));
  for (let second = 0; second < 10; second++) await world.clock.advance(1_000);
  const seen = await following;
  expect(getTypes(seen)).toEqual(expect.arrayContaining(['run-start', 'text', 'turn-end', 'end']));
  expect(seen.at(-1)).toMatchObject({ type: 'end', task: { status: 'success', outcome: { answer: WORDS.join('') } } });
  const said = seen.flatMap((one) => (one.type === 'entry' ? [one.said] : []));
  expect(said).toEqual([...new Set(said)].toSorted((a, b) => a - b));
  expect((await response).status).toBe('success');
});

test('the words of a task that is followed are seen within 50 ms', async () => {
  const { world, store, runner } = setUp();
  const started = await runner.start(TASK);
  const seen: string[] = [];
  const following = (async () => {
    for await (const one of followTask(store, started, { world }))
      if (one.type === 'entry' && one.event.type === 'text') seen.push(one.event.text);
  })();
  // The first word comes immediately, each of the others a second later.
  await world.clock.advance(50);
  for (let count = 1; count <= WORDS.length; count++) {
    expect(seen).toEqual(WORDS.slice(0, count));
    await world.clock.advance(1_000);
  }
  await world.clock.advance(1_000);
  await following;
});

test('a reader that returns with the last position gets the rest, and nothing twice', async () => {
  const { world, store, runner } = setUp();
  const started = await runner.start(TASK);
  for (let second = 0; second < 10; second++) await world.clock.advance(1_000);
  const all = await collect(followTask(store, started, { world }));
  for (const [index, one] of all.entries()) {
    if (one.type !== 'entry') continue;
    expect(await collect(followTask(store, started, { world, after: one.position }))).toEqual(all.slice(index + 1));
  }
});

test('an outage is waited out: every answer that fails is asked for again', async () => {
  const { world, store, runner } = setUp();
  const started = await runner.start(TASK);
  let asked = 0;
  const failing = alterStore(store, (name, call) =>
    ['get', 'read', 'watch'].includes(name) && ++asked % 2 === 1 ? Promise.reject(new StoreBusyError('out')) : call(),
  );
  const errors: unknown[] = [];
  const following = collect(followTask(failing, started, { world, onStoreError: (error) => errors.push(error) }));
  for (let step = 0; step < 200; step++) await world.clock.advance(100);
  const seen = await following;
  expect(getTypes(seen).at(-1)).toBe('end');
  expect(getTypes(seen)).toContain('turn-end');
  expect(errors.length).toBeGreaterThan(3);
});

test('a signal ends the following immediately, even while the store does not respond; the task continues', async () => {
  const { world, store, runner } = setUp();
  const started = await runner.start(TASK);
  const deaf = alterStore(store, (name, call) => (name === 'get' ? new Promise(() => {}) : call()));
  for (const of of [store, deaf]) {
    const controller = new AbortController();
    const following = collect(followTask(of, started, { world, signal: controller.signal }));
    await flushMicrotasks();
    controller.abort();
    expect(getTypes(await following)).not.toContain('end');
  }
  expect(await collect(followTask(store, started, { world, signal: AbortSignal.abort() }))).toEqual([]);
  for (let second = 0; second < 10; second++) await world.clock.advance(1_000);
  expect((await started.response).status).toBe('success');
});

test('a reader that leaves while it waits is let go immediately', async () => {
  const { world, store, runner } = setUp();
  const started = await runner.start(TASK);
  const following = followTask(store, started, { world });
  // Until nothing more is said for now.
  for (let seen = ''; seen !== WORDS[0]; ) {
    const { value } = await following.next();
    if (value?.type === 'entry' && value.event.type === 'text') seen += value.event.text;
  }
  const waiting = following.next();
  await flushMicrotasks();
  await following.return!();
  expect(await waiting).toEqual({ done: true, value: undefined });
  expect(await following.next()).toEqual({ done: true, value: undefined });
  await runner[Symbol.asyncDispose]();
});

test('a task of another tenant, or none, is unknown', async () => {
  const { world, store, runner } = setUp();
  const { id } = await runner.start(TASK);
  await expect(collect(followTask(store, { tenant: 'other', id }, { world }))).rejects.toMatchObject({
    code: 'TASK_NOT_FOUND',
  });
  await runner[Symbol.asyncDispose]();
});

test('events are typed, and those of a task function can be added', () => {
  type Seen = FollowEvent<{ type: 'my-step'; n: number }>;
  const findNumber = (seen: Seen): number | undefined =>
    seen.type === 'entry' && seen.event.type === 'my-step' ? seen.event.n : undefined;
  const findWords = (seen: FollowEvent): string | undefined =>
    seen.type === 'entry' && seen.event.type === 'text' ? seen.event.text : undefined;
  expectTypeOf(findNumber).returns.toEqualTypeOf<number | undefined>();
  expectTypeOf(findWords).returns.toEqualTypeOf<string | undefined>();
});
