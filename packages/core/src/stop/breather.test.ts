import { expect, test } from 'vitest';
import { createVirtualWorld, letEverythingReact } from '../testing/virtual-world.ts';
import { Breather } from './breather.ts';

test('work may go on until the event loop has not turned for 10 ms, and rests until it has', async () => {
  const { clock } = createVirtualWorld();
  let now = 0;
  const breather = new Breather({ now: () => now, setTimer: (...args) => clock.setTimer(...args) });
  expect(breather.breathe()).toBeUndefined();
  now = 9;
  expect(breather.breathe()).toBeUndefined();
  now = 10;
  const rest = breather.breathe();
  let rested = false;
  rest?.then(() => (rested = true)).catch(() => {});
  await letEverythingReact();
  expect(rested).toBe(false);
  await clock.advance(0);
  expect(rested).toBe(true);
  expect(breather.breathe()).toBeUndefined();
  breather[Symbol.dispose]();
  expect(clock.pending).toBe(0);
});

test('work that waits for something outside is never held up', async () => {
  const { clock } = createVirtualWorld();
  const breather = new Breather(clock);
  for (let i = 0; i < 5; i++) {
    expect(breather.breathe()).toBeUndefined();
    await clock.advance(100);
  }
  breather[Symbol.dispose]();
});
