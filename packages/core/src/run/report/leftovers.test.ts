import { expect, test } from 'vitest';
import { CancellationToken } from '../../stop/token/token.ts';
import { createVirtualWorld, flushMicrotasks } from '../../testing/virtual-world.ts';
import { Leftovers } from './leftovers.ts';

const never = new Promise<never>(() => {});

function setUp() {
  const { clock } = createVirtualWorld();
  const token = new CancellationToken({ clock });
  const left = new Leftovers(clock);
  const names = (): string[] => left.running.map(({ name }) => name);
  const settling = async (): Promise<string> => {
    await left.settle(token);
    return `at ${clock.now() - start}`;
  };
  const start = clock.now();
  return { clock, left, names, settling };
}

test('a run waits a second for leftovers, or as long as they were given, and reports those that still run', async () => {
  const { clock, left, names, settling } = setUp();
  left.add('stream', never);
  left.add('short', never, 10);
  left.add('none', never, 0);
  const settled = settling();
  await clock.advance(999);
  expect(await Promise.race([settled, flushMicrotasks().then(() => 'waits')])).toBe('waits');
  await clock.advance(1);
  expect(await settled).toBe('at 1000');
  expect(names()).toEqual(['stream', 'short', 'none']);
  expect(clock.pending).toBe(0);
});

test('work that ends is removed from the leftovers', async () => {
  const { clock, left, names, settling } = setUp();
  const fails = Promise.withResolvers<void>();
  left.add('ends', Promise.resolve());
  left.add('fails', fails.promise);
  const settled = settling();
  await flushMicrotasks();
  expect(names()).toEqual(['fails']);
  fails.reject(new Error('late'));
  expect(await settled).toBe('at 0');
  expect(names()).toEqual([]);
  expect(clock.pending).toBe(0);
});
