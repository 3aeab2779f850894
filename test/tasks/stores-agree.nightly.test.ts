import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BorrowedServer, borrowPostgres } from '../servers/borrow.ts';
import { runAgreement } from './stores-agree/campaign.ts';

/** Results that only some paths lead to. */
const REACHED = (
  'duplicate rejected full stale session-ended held waiting too-late unchanged escalated reclaimed removed live requeued not-failed ' +
  'LEASE_LOST JOURNAL_FULL JOURNAL_GAP QUESTION_REFUSED parked busy'
).split(' ');

/** Only for tests that hang: a busy machine takes minutes. */
const TIMEOUT_MS = 900_000;

let postgres: BorrowedServer;
beforeAll(async () => {
  postgres = await borrowPostgres();
});
afterAll(() => postgres[Symbol.asyncDispose]());

test(
  'memory, SQLite and Postgres agree in 2,000 random histories',
  async () => {
    const servers = { postgres: postgres.url };
    const report = await runAgreement({ ...servers, histories: 2_000, seed: 1, log: console.error });
    console.log(JSON.stringify(report));
    expect(report.failed).toEqual([]);
    expect(Object.keys(report.results)).toEqual(expect.arrayContaining(REACHED));
  },
  TIMEOUT_MS,
);
