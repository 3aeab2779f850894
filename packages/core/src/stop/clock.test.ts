import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { systemClock, systemWorld } from './clock.ts';

test('the machine’s clock tells the time since the epoch and never goes back', () => {
  const first = systemClock.now();
  expect(Math.abs(first - Date.now())).toBeLessThan(60_000);
  expect(systemClock.now()).toBeGreaterThanOrEqual(first);
});

test('a timer fires once, unless it is disposed', async () => {
  let disposed = 0;
  systemClock.setTimer(0, () => disposed++)[Symbol.dispose]();
  await new Promise<void>((resolve) => systemClock.setTimer(1, resolve));
  expect(disposed).toBe(0);
});

test('a timer keeps the process alive, unless it is told not to', () => {
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

test('the real world has ids that differ and chance between 0 and 1', () => {
  expect(systemWorld.createId()).not.toBe(systemWorld.createId());
  const chance = systemWorld.random();
  expect(chance >= 0 && chance < 1).toBe(true);
});
