// P2 It ends: a cancel settles within its bound, even if a tool never returns, and a task whose worker is gone is settled
// by the next one within a lease and two polls. Nothing is ever stuck.

import { LADDERS } from '@whoa/core/embed';
import { CLEANUP_MS } from '@whoa/core/internal';
import { checkHistory } from '@whoa/core/testing';
import { describe, expect, test } from 'vitest';
import { getLadderMs } from '../../packages/core/src/stop/token/level.ts';
import { measureSlowness } from '../slowness.ts';
import { openStore } from '../tasks/open-store.ts';
import { stopBetweenWrites } from '../tasks/stop-process.ts';
import { openFixture } from './fixture.ts';
import { everySurface } from './surfaces/all.ts';
import { followTask, MORTAL_LEASE_MS, POLL_MS, sharedStores, startWorker } from './surfaces/task.ts';

/** A busy machine is no reason to fail. */
const SLACK_MS = 5_000;

describe.concurrent.each(everySurface())('$name', (surface) => {
  test('settles within its bound though a tool never returns, and the report names it', async () => {
    await using fixture = await openFixture([{ parts: [{ call: 'deaf', id: 'd' }] }]);
    await using harness = await surface.open(fixture);
    const prompt = await harness.start('go');
    await fixture.started('deaf');
    const cancelledAt = performance.now();
    await prompt.cancel({ message: 'enough' }, { mode: 'now' });
    const { status, report } = await prompt.end();
    const tookMs = performance.now() - cancelledAt;
    expect(status).toBe('cancelled');
    expect(report).toMatchObject({ isClean: false, calls: [{ callId: 'd', state: 'unknown' }] });
    expect(report!.settledAfterMs).toBeLessThanOrEqual(getLadderMs(LADDERS.now) + CLEANUP_MS);
    expect(tookMs).toBeLessThanOrEqual(getLadderMs(LADDERS.now) + CLEANUP_MS + SLACK_MS * measureSlowness());
    expect(checkHistory(await prompt.history())).toEqual([]);
  });
});

test.concurrent.each(sharedStores())(
  'a task on $name whose worker is killed, before or after its cancel, is settled by the next one',
  async (location) => {
    await using fixture = await openFixture(({ said, results }) =>
      results === 0 ? { parts: [{ text: `${said}. ` }, { call: 'wait', id: said }] } : undefined,
    );
    const where = await location.open();
    await using store = openStore(where);
    await using doomed = startWorker(where, fixture, { leaseMs: MORTAL_LEASE_MS });
    const create = async (input: string) => {
      const receipt = await store.create({ tenant: 'acme', agent: 'tester', input });
      return followTask(store, { tenant: 'acme', id: (receipt as { task: { id: string } }).task.id }, fixture);
    };
    const [before, after] = [await create('before'), await create('after')];
    await fixture.started('wait', 2);
    // Both in one write: the worker has no time to handle the first.
    await stopBetweenWrites(where, doomed.process);
    expect(await before.cancel({ message: 'before' }, { mode: 'graceful' })).toMatchObject({ result: 'accepted' });
    doomed.process.kill('SIGKILL');
    await doomed.ended;
    expect(await after.cancel({ message: 'after' }, { mode: 'graceful' })).toMatchObject({ result: 'accepted' });

    await using next = startWorker(where, fixture, { leaseMs: MORTAL_LEASE_MS });
    await next.hear<{ type: string }>(({ type }) => type === 'serving');
    const servingAt = performance.now();
    const ends = await Promise.all([before.end(), after.end()]);
    expect(performance.now() - servingAt).toBeLessThanOrEqual(
      MORTAL_LEASE_MS + 2 * POLL_MS + SLACK_MS * measureSlowness(),
    );
    expect(ends).toMatchObject([
      {
        status: 'cancelled',
        reason: { message: 'before' },
        report: { calls: [{ callId: 'before', state: 'unknown' }] },
      },
      { status: 'cancelled', reason: { message: 'after' }, report: { calls: [{ callId: 'after', state: 'unknown' }] } },
    ]);
    for (const status of ['init', 'running', 'cancelling'] as const)
      expect((await store.list({ tenant: 'acme', status })).tasks).toEqual([]);
    next.process.send('stop');
    await next.ended;
  },
);
