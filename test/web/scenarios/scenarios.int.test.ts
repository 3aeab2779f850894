// Every scenario of a chat: instances in separate processes, a real store, a real browser. CI runs each once; all of them,
// from packed packages, are `npm run long -- web`.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type BorrowedServer, borrowPostgres } from '../../servers/borrow.ts';
import { type Kind, openHarness, type WebHarness } from './harness.ts';
import { SCENARIOS } from './table.ts';

/** The folder with the installed packages, if every scenario is to run on them. */
const folder = process.env['WHOA_WEB_FOLDER'];
const isLong = process.env['WHOA_WEB_LONG'] !== undefined;
const KINDS = isLong ? (['reply', 'agent'] as const) : (['reply'] as const);
/** A store, two instances and a browser, on a busy machine. */
const START_MS = 180_000;
const SCENARIO_MS = 240_000;

const selectScenarios = (kind: Kind, wantsAlone: boolean) =>
  SCENARIOS.filter(({ kinds = ['reply', 'agent'], isAlone = false, isLong: isSlow = false }) =>
    [kinds.includes(kind), isAlone === wantsAlone, isLong || !isSlow].every(Boolean),
  );

describe.each(KINDS)('%s', (kind) => {
  let server: BorrowedServer;
  let harness: WebHarness;
  beforeAll(async () => {
    server = await borrowPostgres();
    harness = await openHarness({ kind, store: server.url, folder });
  }, START_MS);
  afterAll(async () => {
    await harness[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  }, START_MS);

  test.concurrent.for(selectScenarios(kind, false))('$name', { timeout: SCENARIO_MS }, async ({ run, endsLate }) => {
    await using site = await harness.open();
    await run(site, harness);
    if (endsLate !== true) await site.agree();
  });

  test.for(selectScenarios(kind, true))('$name', { timeout: SCENARIO_MS }, async ({ run }) => {
    await using site = await harness.open();
    try {
      await run(site, harness);
      await site.agree();
    } finally {
      await harness.heal();
    }
  });

  test('the strict provider refused nothing that it was sent', () => {
    expect(harness.refusals()).toEqual([]);
  });
});
