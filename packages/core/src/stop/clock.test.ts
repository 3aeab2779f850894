import { execFileSync } from 'node:child_process';
import { expect, test, vi } from 'vitest';
import { createVirtualWorld } from '../testing/virtual-world.ts';
import { systemClock, systemWorld, worldRule } from './clock.ts';
import { CancellationToken } from './token/token.ts';

test('the machine’s clock returns the time since the epoch and never goes back', () => {
  const first = systemClock.now();
  expect(Math.abs(first - Date.now())).toBeLessThan(60_000);
  expect(systemClock.now()).toBeGreaterThanOrEqual(first);
});

test('after a sleep of the machine the clock lags the wall clock by it, and no bound is shorter for it', () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  try {
    using token = new CancellationToken();
    const lagMs = (): number => systemClock.wallNow!() - systemClock.now();
    const before = lagMs();
    const { killAt } = token.cancel('enough') as { killAt: number };
    vi.setSystemTime(Date.now() + 3_600_000);
    expect(lagMs() - before).toBeGreaterThan(3_500_000);
    expect(killAt - systemClock.now()).toBeGreaterThan(0);
    expect(token.level).toBe('drain');
  } finally {
    vi.useRealTimers();
  }
});

test('a timer fires once, unless it is disposed', async () => {
  let disposed = 0;
  systemClock.setTimer(0, () => disposed++)[Symbol.dispose]();
  await new Promise<void>((resolve) => systemClock.setTimer(1, resolve));
  expect(disposed).toBe(0);
});

test('a timer keeps the process alive by default', () => {
  const program = (options: string): string => `
    import { systemClock } from '${new URL('clock.ts', import.meta.url).href}';
    systemClock.setTimer(20, () => console.log('fired')${options});`;
  const run = (options: string): string =>
    execFileSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', program(options)], {
      encoding: 'utf8',
    });
  expect(run('')).toBe('fired\n');
  expect(run(', { keepAlive: true }')).toBe('fired\n');
  expect(run(', { keepAlive: false }')).toBe('');
});

test('a timer of the machine’s clock waits for its whole time, even past 2^31 ms', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  try {
    const fired: string[] = [];
    const month = 30 * 86_400_000;
    systemClock.setTimer(2 * month, () => fired.push('two months'));
    systemClock.setTimer(2 ** 31, () => fired.push('2^31'), { keepAlive: false });
    const disposed = systemClock.setTimer(2 * month, () => fired.push('disposed'));
    systemClock.setTimer(Infinity, () => fired.push('never'))[Symbol.dispose]();
    systemClock.setTimer(Infinity, () => fired.push('never'));
    expect(vi.getTimerCount()).toBe(3);
    vi.advanceTimersByTime(2 ** 31 - 1);
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(fired).toEqual(['2^31']);
    // Disposing it during the wait cancels the current timer.
    disposed[Symbol.dispose]();
    vi.advanceTimersByTime(2 * month - 2 ** 31 - 1);
    expect(fired).toEqual(['2^31']);
    vi.advanceTimersByTime(1);
    expect(fired).toEqual(['2^31', 'two months']);
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

test('the real `setTimeout` would fire a wait of 2^31 ms immediately; the clock does not', async () => {
  const fired: string[] = [];
  const timers = [2 ** 31, 2 ** 40, Number.MAX_VALUE, Infinity].map((ms) =>
    systemClock.setTimer(ms, () => fired.push(`${ms}`)),
  );
  await new Promise<void>((resolve) => systemClock.setTimer(5, resolve));
  for (const timer of timers) timer[Symbol.dispose]();
  expect(fired).toEqual([]);
});

test('a clock rejects an invalid duration, and a time in the past has passed immediately', async () => {
  for (const clock of [systemClock, createVirtualWorld().clock]) {
    for (const ms of [Number.NaN, '5', undefined, null, {}]) {
      expect(() => clock.setTimer(ms as number, () => {})).toThrow(/^ms: expected a number of milliseconds/);
    }
  }
  await new Promise<void>((resolve) => systemClock.setTimer(-5, resolve));
});

test('a wait that never ends does not keep the process alive', () => {
  const program = `
    import { systemClock } from '${new URL('clock.ts', import.meta.url).href}';
    systemClock.setTimer(Infinity, () => {});
    console.log('set');`;
  const out = execFileSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', program], {
    encoding: 'utf8',
  });
  expect(out).toBe('set\n');
});

test('the real world has ids that differ and chance between 0 and 1', () => {
  expect(systemWorld.createId()).not.toBe(systemWorld.createId());
  const chance = systemWorld.random();
  expect(chance >= 0 && chance < 1).toBe(true);
});

test('a timer, even a long one, lets the process end only with `keepAlive: false`, and may be a plain number', () => {
  const unref = vi.fn();
  const timeout = vi.spyOn(globalThis, 'setTimeout').mockReturnValue({ unref } as never);
  try {
    for (const ms of [5, 2 ** 40]) {
      systemClock.setTimer(ms, () => {});
      systemClock.setTimer(ms, () => {}, { keepAlive: true });
      expect(unref).not.toHaveBeenCalled();
      systemClock.setTimer(ms, () => {}, { keepAlive: false });
      expect(unref).toHaveBeenCalledTimes(1);
      unref.mockClear();
    }
    timeout.mockReturnValue(7 as never);
    expect(() => systemClock.setTimer(5, () => {}, { keepAlive: false })).not.toThrow();
  } finally {
    timeout.mockRestore();
  }
});

test('ids are those of the platform, or 16 random bytes where it makes none', () => {
  vi.stubGlobal('crypto', { randomUUID: () => 'a uuid' });
  expect(systemWorld.createId()).toBe('a uuid');
  vi.stubGlobal('crypto', { getRandomValues: (bytes: Uint8Array) => bytes.map((_, index) => index * 15) });
  expect(systemWorld.createId()).toBe('000f1e2d3c4b5a69788796a5b4c3d2e1');
  vi.unstubAllGlobals();
});

test.each<[string, object, string]>([
  ['no ids', { createId: undefined }, 'world: expected a world'],
  ['no chance', { random: undefined }, 'world: expected a world'],
  ['no clock', { clock: undefined }, 'world.clock: expected a world'],
  ['a clock without timers', { clock: { now: () => 0 } }, 'world.clock: expected a world'],
  ['a clock without a time', { clock: { setTimer: () => {} } }, 'world.clock: expected a world'],
  ['a clock that knows no time', { clock: { ...systemClock, now: () => Number.NaN } }, 'world.clock.now(): expected'],
])('a world with %s is rejected', (_, changed, message) => {
  expect(worldRule(systemWorld, 'world')).toBe(systemWorld);
  expect(() => worldRule({ ...systemWorld, ...changed }, 'world')).toThrow(message);
});
