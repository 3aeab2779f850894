// `npm run long -- nightly` runs 2,000 histories, and checks that they reach every rare result.
import { expect, test } from 'vitest';
import { borrowPostgres } from '../servers/borrow.ts';
import { runAgreement } from './stores-agree/campaign.ts';

/** Only for tests that hang: a busy machine takes minutes. */
const TIMEOUT_MS = 900_000;

test(
  'memory, SQLite and Postgres agree in 300 random histories',
  async () => {
    await using postgres = await borrowPostgres();
    const servers = { postgres: postgres.url };
    const report = await runAgreement({ ...servers, histories: 300, seed: 1, log: console.error });
    console.log(JSON.stringify(report));
    expect(report.failed).toEqual([]);
  },
  TIMEOUT_MS,
);
