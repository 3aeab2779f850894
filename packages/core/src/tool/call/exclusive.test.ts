import { expect, test } from 'vitest';
import { CancellationToken } from '../../stop/token/token.ts';
import { createVirtualWorld, flushMicrotasks } from '../../testing/virtual-world.ts';
import { ExclusiveKeys } from './exclusive.ts';

function setUp() {
  const { clock } = createVirtualWorld();
  const token = new CancellationToken({ clock });
  const take = async (keys: ExclusiveKeys, holder: string, ...names: string[]): Promise<() => void> =>
    (await keys.acquire(names, { holder, token })) as () => void;
  return { clock, token, take };
}

const settled = (promise: Promise<unknown>): Promise<unknown> =>
  Promise.race([promise, flushMicrotasks().then(() => 'waits')]);

test('a call waits for each of its keys, and takes none before all are free', async () => {
  const { take } = setUp();
  const keys = new ExclusiveKeys();
  const release = await take(keys, 'first', 'b');
  const second = take(keys, 'second', 'a', 'b');
  expect(await settled(second)).toBe('waits');
  (await take(keys, 'third', 'a'))();
  release();
  expect(await settled(second)).toBeTypeOf('function');
});

test('keys that are released twice are free once', async () => {
  const { take } = setUp();
  const keys = new ExclusiveKeys();
  const release = await take(keys, 'first', 'a');
  release();
  await take(keys, 'second', 'a');
  release();
  expect(await settled(take(keys, 'third', 'a'))).toBe('waits');
});

test('lent keys are back when nothing inside holds one', async () => {
  const { take } = setUp();
  const keys = new ExclusiveKeys();
  await take(keys, 'outer', 'a', 'b');
  const lent = keys.lend(['a', 'b']);
  expect(lent.returned).toBeUndefined();
  const first = await take(lent, 'first', 'a');
  const second = await take(lent, 'second', 'b');
  const { returned } = lent;
  first();
  expect(await settled(returned!)).toBe('waits');
  second();
  expect(await settled(returned!)).toBeUndefined();
});

test('keys that were not lent are shared with everyone above, however deep', async () => {
  const { take } = setUp();
  const keys = new ExclusiveKeys();
  const inner = keys.lend(['a']).lend(['a']);
  const release = await take(inner, 'inner', 'c');
  expect(inner.returned).toBeUndefined();
  const outer = take(keys, 'outer', 'c');
  expect(await settled(outer)).toBe('waits');
  release();
  expect(await settled(outer)).toBeTypeOf('function');
});

test('the wait for a key ends after a minute, with the name of its holder, or with a cancel', async () => {
  const { take, clock, token } = setUp();
  const keys = new ExclusiveKeys();
  await take(keys, 'first', 'a');
  const late = keys.acquire(['a'], { holder: 'second', token });
  await clock.advance(59_999);
  expect(await settled(late)).toBe('waits');
  await clock.advance(1);
  expect(await settled(late)).toEqual({ heldBy: 'first' });
  const cancelled = keys.acquire(['a'], { holder: 'third', token });
  await flushMicrotasks();
  token.cancel();
  expect(await settled(cancelled)).toBeUndefined();
  expect(token.statistics.children).toBe(0);
});
