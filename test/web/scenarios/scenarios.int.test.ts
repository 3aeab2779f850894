// Every scenario of a chat: instances in separate processes, a real store, a real browser. A change runs some, the night each
// once; all of them, from packed packages, are `npm run long -- web`.
// dear: nineteen chats, each with pages of a real browser and two instances.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chosenForChange } from '../../night.ts';
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

/** What only a browser, several pages or several instances show. */
const CHOSEN = [
  'stop: what was said stays, and the next message is answered',
  'stop in another browser, through the other instance',
  'a newer message of a tab that was open before replaces the reply',
  'stop while a call runs that must finish: the page shows it until it has',
  'stop while the server is away for 1 s',
  'a yes while the server is away counts once',
  'a message before the reply to the last one has a word: the page shows them in the order of the server',
  'a message that was not sent yet is sent by the page that is loaded again',
  'a stop that was not sent yet goes first in the page that is loaded again',
  'a message that was refused while another user was logged in is shown no more when the first one is back',
  'reload: the reply goes on without a gap or a repeat',
  'a long reply: stopped in the middle',
  'a question is answered in another tab, and too late in another browser',
  'a question is answered after a deploy',
  'a tool of the page is answered',
  'edit during its words',
  "rollback of 'half': the page shows the turn no more",
  'SIGKILL in the middle of a reply: the page goes on by itself',
  'stop after SIGKILL: the page shows how it settled',
  'a phone that had the chat open sees the reply, and stops it',
  'a tool runs in the page that asked, and not on a phone that looks on',
];
const FOR_CHANGE = isLong ? SCENARIOS : chosenForChange(SCENARIOS, CHOSEN);

const selectScenarios = (kind: Kind, wantsAlone: boolean) =>
  FOR_CHANGE.filter(({ kinds = ['reply', 'agent'], isAlone = false, isLong: isSlow = false }) =>
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

  test.concurrent.for(selectScenarios(kind, false))('$name', { timeout: SCENARIO_MS }, async ({ run }) => {
    await using site = await harness.open();
    await run(site, harness);
    await site.agree();
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
