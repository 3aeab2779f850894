import { createVirtualWorld } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { LeaseClock } from './lease-clock.ts';

test('a late response to an earlier request does not shorten the lease', async () => {
  const { clock } = createVirtualWorld();
  const lease = new LeaseClock(clock, 3_000);
  const earlier = lease.now();
  await clock.advance(2_000);
  const later = lease.now();
  await clock.advance(500);
  lease.keepFrom(later);
  lease.keepFrom(earlier);
  await clock.advance(2_499);
  expect(lease.isOver).toBe(false);
  await clock.advance(1);
  expect(lease.isOver).toBe(true);
});
