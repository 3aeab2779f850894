// Readers of a talking task while the ledger is away and the bus is not.

import { setTimeout as wait } from 'node:timers/promises';
import { createAgent, sleep } from '@whoa/core';
import { createRunner, createTaskStore, followTask } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { startPostgres } from '../servers/postgres.ts';
import { startRedis } from '../servers/redis.ts';
import { ShownJournal } from './shown-journal.ts';

const AWAY_MS = 20_000;
/** What is unwritten for longer is not shown. */
const MAX_UNWRITTEN_MS = 1_000;
/** For a pulse, an append and a busy machine. */
const SLACK_MS = 500;

const talker = createAgent({
  name: 'talker',
  planner: {
    async next(_history, { token, emit }) {
      for (;;) {
        emit({ type: 'text', text: `${Date.now()} ` });
        await sleep(20, { clock: token.clock, token });
      }
    },
  },
});

test('while the ledger is away for 20 s readers see at most a second more, and all of it afterwards', async () => {
  await using redis = await startRedis({ appendfsync: 'none' });
  await using postgres = await startPostgres();
  const config = { backend: 'postgres', url: postgres.url, bus: redis.url } as const;
  await using store = createTaskStore(config);
  await using other = createTaskStore(config);
  await using runner = createRunner({ store, agents: { talker }, leaseMs: 3 * AWAY_MS });
  const ref = await runner.start({ tenant: 'acme', agent: 'talker', input: 'talk' });
  const shown = new ShownJournal();
  const said = (): number[] =>
    shown.entries.flatMap(({ event }) => (event.type === 'text' ? event.text.trim().split(' ').map(Number) : []));
  const lastSaid = (): number => Math.max(...said());
  const reading = (async () => {
    for await (const seen of followTask(other, ref)) if (seen.type !== 'end') shown.add(seen);
  })();
  await expect.poll(() => said().length, { timeout: 20_000 }).toBeGreaterThan(100);

  await postgres.pause();
  const awayAt = Date.now();
  await wait(AWAY_MS);
  expect(lastSaid() - awayAt).toBeLessThan(MAX_UNWRITTEN_MS + SLACK_MS);
  expect(shown.entries.filter(({ isDraft }) => isDraft).length).toBeGreaterThan(0);
  await postgres.resume();
  await expect.poll(() => lastSaid() - awayAt, { timeout: 30_000 }).toBeGreaterThan(AWAY_MS);

  await other.cancel(ref, {}, { mode: 'now' });
  await reading;
  expect(shown.findProblems(await other.read(ref, { limit: 10_000 }))).toEqual([]);
  expect(await other.get(ref)).toMatchObject({ status: 'cancelled', crashes: 0 });
}, 120_000);
