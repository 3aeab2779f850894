import { expect, test } from 'vitest';
import { createVirtualWorld } from '../../testing/virtual-world.ts';
import { getLadderMs } from './level.ts';
import { MAX_SHIELD_MS, shield } from './shield.ts';
import { CancellationToken } from './token.ts';

test('a shield holds until its own bound, and then it is killed with that as its reason', async () => {
  const { clock } = createVirtualWorld();
  const parent = new CancellationToken({ clock, name: 'run' });
  const shielded = shield(parent, { timeoutMs: 1_000 });
  parent.cancel({}, { mode: 'kill' });
  await clock.advance(999);
  expect(shielded.isCancelled).toBe(false);
  await clock.advance(1);
  expect(shielded).toMatchObject({
    level: 'kill',
    reason: { kind: 'deadline', message: 'run (shielded) took longer than 1000 ms' },
  });
});

test('a shield under a cancelled token holds as well, and can still be cancelled itself', () => {
  const { clock } = createVirtualWorld();
  const parent = new CancellationToken({ clock });
  parent.cancel({}, { mode: 'kill' });
  const shielded = shield(parent, { timeoutMs: MAX_SHIELD_MS, name: 'payment' });
  expect(shielded).toMatchObject({ isCancelled: false, name: 'payment' });
  expect(shielded.cancel().result).toBe('accepted');
  shielded[Symbol.dispose]();
  expect(clock.pending).toBe(0);
});

test('a shield without a sensible bound is rejected', () => {
  const parent = new CancellationToken();
  for (const timeoutMs of [0, -1, MAX_SHIELD_MS + 1, Number.NaN]) {
    expect(() => shield(parent, { timeoutMs })).toThrow(
      `timeoutMs: expected more than 0 to 600000 ms, got ${timeoutMs}`,
    );
  }
});

test('a ladder has a total duration', () => {
  expect([getLadderMs('graceful'), getLadderMs('now'), getLadderMs('kill'), getLadderMs({ drainMs: 5 })]).toEqual([
    12_000, 2_000, 0, 5,
  ]);
});
