// Every scenario of a chat: instances in processes of their own, a real store, a real browser. CI plays each once; all of
// them on every store, from packed packages, are `npm run long -- web`.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type BorrowedServer, borrowPostgres, borrowRedis } from '../../servers/borrow.ts';
import { type Kind, openStage, type Stage } from './stage.ts';
import { SCENARIOS } from './table.ts';

/** Where packed packages are installed; then everything is played. */
const folder = process.env['WHOA_WEB_FOLDER'];
const isLong = process.env['WHOA_WEB_LONG'] !== undefined;
const STORES = { Redis: borrowRedis, Postgres: borrowPostgres };
const SETS = (isLong ? (['Redis', 'Postgres'] as const) : (['Redis'] as const)).flatMap((store) =>
  (isLong ? (['reply', 'agent'] as const) : (['reply'] as const)).map((kind) => ({ store, kind })),
);
/** A store, two instances and a browser, on a busy machine. */
const START_MS = 180_000;
const SCENARIO_MS = 240_000;

const scenariosOf = (kind: Kind, wantsAlone: boolean) =>
  SCENARIOS.filter(({ kinds = ['reply', 'agent'], isAlone = false, isLong: isSlow = false }) =>
    [kinds.includes(kind), isAlone === wantsAlone, isLong || !isSlow].every(Boolean),
  );

describe.each(SETS)('$store, $kind', ({ store, kind }) => {
  let server: BorrowedServer;
  let stage: Stage;
  beforeAll(async () => {
    server = await STORES[store]();
    stage = await openStage({ kind, store: server.url, folder });
  }, START_MS);
  afterAll(async () => {
    await stage[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  }, START_MS);

  test.concurrent.for(scenariosOf(kind, false))('$name', { timeout: SCENARIO_MS }, async ({ play }) => {
    await using site = await stage.open();
    await play(site, stage);
  });

  test.for(scenariosOf(kind, true))('$name', { timeout: SCENARIO_MS }, async ({ play }) => {
    await using site = await stage.open();
    try {
      await play(site, stage);
    } finally {
      await stage.heal();
    }
  });

  test('the strict provider refused nothing that it was sent', () => {
    expect(stage.refusals()).toEqual([]);
  });
});
