// Runs random histories on memory, SQLite and Postgres, and compares results, records, hints and indexes.
//   npm run long -- stores-agree [HISTORIES] [FIRST SEED] [--thorough]
// One seed again: npm run long -- stores-agree 1 SEED --thorough
import { parseArgs } from 'node:util';
import { borrowPostgres } from '../servers/borrow.ts';
import { runAgreement } from '../tasks/stores-agree/campaign.ts';

const { values, positionals } = parseArgs({ options: { thorough: { type: 'boolean' } }, allowPositionals: true });
const [histories = '20000', seed = '1'] = positionals;
await using postgres = await borrowPostgres();
const started = performance.now();
const report = await runAgreement({
  postgres: postgres.url,
  histories: Number(histories),
  seed: Number(seed),
  isThorough: values.thorough ?? false,
  log: console.log,
});
const seconds = Math.round((performance.now() - started) / 1_000);
console.log(JSON.stringify({ ...report, firstSeed: Number(seed), seconds }));
if (report.failed.length > 0) process.exitCode = 1;
