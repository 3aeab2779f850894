import { expect, test, vi } from 'vitest';
import { createVirtualWorld, flushMicrotasks } from '../testing/virtual-world.ts';
import { systemClock } from './clock.ts';
import { LoopYielder } from './loop-yielder.ts';

test('work may go on until the event loop has not turned for 10 ms, and rests until it has', async () => {
  const { clock } = createVirtualWorld();
  let now = 0;
  const yielder = new LoopYielder({ now: () => now, setTimer: (...args) => clock.setTimer(...args) });
  expect(yielder.yieldIfDue()).toBeUndefined();
  now = 9;
  expect(yielder.yieldIfDue()).toBeUndefined();
  now = 10;
  const rest = yielder.yieldIfDue();
  let rested = false;
  rest?.then(() => (rested = true)).catch(() => {});
  await flushMicrotasks();
  expect(rested).toBe(false);
  await clock.advance(0);
  expect(rested).toBe(true);
  expect(yielder.yieldIfDue()).toBeUndefined();
  yielder[Symbol.dispose]();
  expect(clock.pending).toBe(0);
});

test('work that waits for something outside is never held up', async () => {
  const { clock } = createVirtualWorld();
  const yielder = new LoopYielder(clock);
  for (let i = 0; i < 5; i++) {
    expect(yielder.yieldIfDue()).toBeUndefined();
    await clock.advance(100);
  }
  yielder[Symbol.dispose]();
});

test('real time needs no timer: a test that fakes timers, and not the time, does not have to advance them', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] });
  try {
    using yielder = new LoopYielder(systemClock);
    let rest: Promise<void> | undefined;
    do rest = yielder.yieldIfDue();
    while (rest === undefined);
    expect(vi.getTimerCount()).toBe(0);
    await rest;
    expect(yielder.yieldIfDue()).toBeUndefined();
  } finally {
    vi.useRealTimers();
  }
});
