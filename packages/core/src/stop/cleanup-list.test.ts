import { expect, test } from 'vitest';
import { createVirtualWorld, flushMicrotasks } from '../testing/virtual-world.ts';
import { type CleanupError, createCleanupList } from './bounded/cleanup.ts';

function setUp(timeoutMs?: number) {
  const { clock } = createVirtualWorld();
  const errors: CleanupError[] = [];
  const list = createCleanupList({
    name: 'the test',
    clock,
    onError: (error) => errors.push(error),
    ...(timeoutMs !== undefined && { timeoutMs }),
  });
  return { clock, errors, list };
}

test('cleanups run in reverse, one at a time, and one that throws does not keep the next from running', async () => {
  const { list, errors } = setUp();
  const ran: number[] = [];
  list.defer(() => ran.push(1));
  list.defer(() => Promise.reject(new Error('no luck')));
  list.defer(async () => {
    await Promise.resolve();
    ran.push(3);
  });
  await list[Symbol.asyncDispose]();
  expect(ran).toEqual([3, 1]);
  expect(errors.map(({ cause }) => (cause as Error).message)).toEqual(['no luck']);
});

test('a cleanup that hangs is abandoned at its timeout, and the others still run', async () => {
  const { list, errors, clock } = setUp(1_000);
  const ran: string[] = [];
  list.defer(({ signal }) => ran.push(`first ${signal.aborted}`));
  list.defer(() => new Promise(() => {}));
  const closing = list[Symbol.asyncDispose]();
  await flushMicrotasks();
  expect(ran).toEqual([]);
  await clock.advance(1_000);
  await closing;
  expect(ran).toEqual(['first true']);
  expect(errors.map(({ message }) => message)).toEqual(['The cleanup of the test did not end within 1000 ms']);
});

test('an empty list ends immediately, even twice, and a cleanup that is added after the end runs immediately', async () => {
  const { list, errors } = setUp();
  await list[Symbol.asyncDispose]();
  await list[Symbol.asyncDispose]();
  let hasRun = false;
  list.defer(() => {
    hasRun = true;
  });
  expect(hasRun).toBe(true);
  list.defer(() => {
    throw new Error('late');
  });
  await flushMicrotasks();
  expect(errors).toHaveLength(1);
});
