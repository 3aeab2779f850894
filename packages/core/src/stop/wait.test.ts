import { expect, test } from 'vitest';
import { createVirtualWorld } from '../testing/virtual-world.ts';
import { CancellationToken } from './token/token.ts';
import { sleep, waitAtMost, waitUntilLevel } from './wait.ts';

function setUp() {
  const { clock } = createVirtualWorld();
  return { clock, token: new CancellationToken({ clock }) };
}

test('a wait ends with its work, and leaves no listener', async () => {
  const { token } = setUp();
  expect(await waitUntilLevel(Promise.resolve(7), token, 'kill')).toEqual({ by: 'value', value: 7 });
  expect(await waitUntilLevel(Promise.reject(new Error('x')), token, 'kill')).toEqual({
    by: 'error',
    error: new Error('x'),
  });
  expect(token.statistics.listeners).toBe(0);
});

test('a wait ends at its level, not before', async () => {
  const { clock, token } = setUp();
  const wait = waitUntilLevel(new Promise(() => {}), token, 'abort');
  token.cancel();
  await clock.advance(9_999);
  expect(token.statistics.listeners).toBe(1);
  await clock.advance(1);
  expect(await wait).toEqual({ by: 'level', level: 'abort' });
  expect(token.statistics.listeners).toBe(0);
  expect(await waitUntilLevel(new Promise(() => {}), token, 'drain')).toEqual({ by: 'level', level: 'abort' });
  expect(token.statistics.listeners).toBe(0);
});

test.each(['with', 'without'])('sleep %s a token ends with the time', async (which) => {
  const { clock, token } = setUp();
  let woken = false;
  const sleeping = sleep(100, which === 'with' ? { clock, token } : { clock }).then(() => (woken = true));
  await clock.advance(99);
  expect(woken).toBe(false);
  await clock.advance(1);
  await sleeping;
  expect(token.statistics.listeners).toBe(0);
});

test("sleep takes its token's clock, or the system's", async () => {
  const { clock } = createVirtualWorld();
  const token = new CancellationToken({ clock });
  const asleep = sleep(1_000, { token });
  await clock.advance(1_000);
  await asleep;
  await sleep(0);
});

test('sleep ends with the token, at any level, and leaves no timer', async () => {
  const { clock, token } = setUp();
  const sleeping = sleep(100, { clock, token });
  token.cancel({ message: 'up' }, { mode: { drainMs: 1_000 } });
  await expect(sleeping).rejects.toMatchObject({ code: 'CANCELLED', reason: { message: 'up' } });
  await expect(sleep(100, { clock, token })).rejects.toMatchObject({ code: 'CANCELLED' });
  token[Symbol.dispose]();
  expect(clock.pending).toBe(0);
});

test('a wait for work has a limit, and no timer stays behind', async () => {
  const { clock } = setUp();
  const work = Promise.withResolvers<void>();
  const inTime = waitAtMost(work.promise, 100, clock);
  work.resolve();
  await inTime;
  expect(clock.pending).toBe(0);
  const tooSlow = waitAtMost(new Promise(() => {}), 100, clock);
  await clock.advance(100);
  await tooSlow;
  await expect(waitAtMost(Promise.reject(new Error('no')), 100, clock)).rejects.toThrow('no');
  expect(clock.pending).toBe(0);
});

test('a time limit that has already passed ends the wait immediately', async () => {
  await waitAtMost(new Promise(() => {}), -5);
});
