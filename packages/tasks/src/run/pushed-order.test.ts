import type { CancellationToken, StopLevel } from '@whoa/core';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { alterStore } from '../../../../test/tasks/altered-store.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import type { Hint } from '../store.ts';
import type { StopOrder } from '../task.ts';
import { createRunner } from './store-runner.ts';
import type { TaskHandler } from './work.ts';

/** One task at work, on a store that counts how often it is asked, and whose pushes can be forged and kept back. */
async function startTask(endsAt: StopLevel = 'abort') {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  const asked: string[] = [];
  let claim = '';
  let push: (hint: Hint) => void = () => {};
  let isSilent = false;
  const store = alterStore(inner, (name, call, args) => {
    if (name === 'watch') {
      const emit = args[1] as typeof push;
      [push, args[1]] = [emit, (hint: Hint) => !isSilent && emit(hint)];
    } else asked.push(name);
    if (name === 'claim') claim = (args[1] as { claim: string }).claim;
    return call();
  });
  let work: CancellationToken | undefined;
  const runner = createRunner({
    store,
    world,
    agents: {
      assistant: ({ token }) =>
        new Promise((_resolve, reject) => {
          work = token;
          token.onCancel((level) => level === endsAt && reject(new Error('stopped')));
        }),
    },
  });
  const running = runner.run({ tenant: 'acme', agent: 'assistant', input: 'hello' });
  await flushMicrotasks();
  const { id } = (await inner.list({ tenant: 'acme' })).tasks[0]!;
  asked.length = 0;
  const forge = async (order?: { epoch: number; stop: StopOrder; claim?: string }): Promise<void> => {
    const forged = order && { order: { claim, orderNumber: 1, ...order } };
    push({ type: 'cancel', id, tenant: 'acme', worker: runner.worker, ...forged });
    await flushMicrotasks();
  };
  const dropHints = (): void => {
    isSilent = true;
  };
  return { world, inner, asked, runner, running, ref: { tenant: 'acme', id }, token: work!, forge, dropHints };
}

const STOP: StopOrder = { level: 'kill', reason: { kind: 'user', at: 0 }, abortAt: 0, killAt: 0, undo: false };

test('a cancel that brings its order along stops the work without a question to the store', async () => {
  const { inner, asked, running, ref, token } = await startTask();
  let askedBefore = -1;
  token.onCancel(() => (askedBefore = asked.length));
  await inner.cancel(ref, { message: 'enough' }, { mode: 'now' });
  expect(askedBefore).toBe(0);
  expect(token).toMatchObject({ level: 'abort', reason: { message: 'enough' } });
  expect(await running).toMatchObject({ status: 'cancelled', msg: 'enough' });
});

test('an order for another claim is not applied: a heartbeat finds no order', async () => {
  const { asked, forge, token, inner, ref, running } = await startTask();
  for (const epoch of [0, 2, Number.NaN]) await forge({ epoch, stop: STOP });
  await forge({ epoch: 1, claim: 'guessed', stop: STOP });
  expect(asked).toEqual(['heartbeat', 'heartbeat', 'heartbeat', 'heartbeat']);
  expect(token.isCancelled).toBe(false);
  await inner.cancel(ref, {}, { mode: 'now' });
  expect(await running).toMatchObject({ status: 'cancelled' });
});

test.each(['cancel', 'resync'])('a %s that arrives before the answer to the claim is not missed', async (type) => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  const answered = Promise.withResolvers<void>();
  let push: (hint: Hint) => void = () => {};
  const store = alterStore(inner, async (name, call, args) => {
    if (name === 'watch') [push, args[1]] = [args[1] as typeof push, () => {}];
    const answer = await call();
    if (name === 'claim') await answered.promise;
    return answer;
  });
  const work: TaskHandler = ({ token }) =>
    new Promise((_resolve, reject) => token.onCancel(() => reject(new Error('stopped'))));
  const runner = createRunner({ store, world, agents: { assistant: work } });
  const running = runner.run({ tenant: 'acme', agent: 'assistant', input: 'hello' });
  await flushMicrotasks();
  const { id } = (await inner.list({ tenant: 'acme' })).tasks[0]!;
  await inner.cancel({ tenant: 'acme', id }, { message: 'early' }, { mode: 'now' });
  push(type === 'resync' ? { type } : { type: 'cancel', id, tenant: 'acme' });
  answered.resolve();
  expect(await running).toMatchObject({ status: 'cancelled', msg: 'early' });
  await runner[Symbol.asyncDispose]();
});

test('a cancel that brings no order proves nothing, and one that is true is found by asking', async () => {
  const { asked, forge, token, inner, ref, running, dropHints } = await startTask();
  await forge();
  expect([asked, token.isCancelled]).toEqual([['heartbeat'], false]);
  dropHints();
  await inner.cancel(ref, {}, { mode: 'now' });
  expect(token.isCancelled).toBe(false);
  await forge();
  expect(token.level).toBe('abort');
  expect(await running).toMatchObject({ status: 'cancelled' });
});

test('an order that arrives twice, late, or after a higher one changes nothing', async () => {
  const { forge, token, inner, ref, running } = await startTask('kill');
  const levels: string[] = [];
  token.onCancel((level) => levels.push(level));
  await inner.cancel(ref, { message: 'first' }, { mode: { abortMs: 5_000 } });
  const { stop, epoch } = (await inner.get(ref))!;
  await inner.cancel(ref, { message: 'second' }, { mode: 'kill' });
  await forge({ epoch, stop: stop! });
  await forge({ epoch, stop: stop! });
  expect(levels).toEqual(['abort', 'kill']);
  expect(token).toMatchObject({ level: 'kill', reason: { message: 'first' } });
  expect(await running).toMatchObject({ status: 'cancelled', msg: 'first' });
  await forge({ epoch, stop: stop! });
});
