// Does one thing in each page while the server is away, and measures how soon it takes effect when the server answers again:
//   npm run long -- stop-away [SECONDS] [COUNT] [cut|silent] [stop|yes|output|message]

import { loadavg } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { until } from '../../promises/fixture.ts';
import { borrowPostgres } from '../../servers/borrow.ts';
import { ALL } from '../browser.ts';
import type { ChatPage } from '../chat-page.ts';
import { approve, callIs, calling, located } from '../scenarios/acts.ts';
import { openHarness, type Site } from '../scenarios/harness.ts';
import { CALLING } from '../scenarios/script.ts';

interface Act {
  readonly begin: (site: Site) => Promise<ChatPage>;
  readonly act: (chat: ChatPage, site: Site) => Promise<void>;
  /** Resolves when it has taken effect. */
  readonly effect: (chat: ChatPage, site: Site) => Promise<void>;
  /** The effects of the tools in the end. */
  readonly effects: readonly string[];
}

const MAX_MS = 2_000;
/** So many pages are open together. */
const TOGETHER = 10;

const ACTS: Readonly<Record<string, Act>> = {
  stop: {
    begin: (site) => calling(site, 'look'),
    act: ({ page }) => page.click('button'),
    effect: (_, site) => until(() => site.effects.includes('look left')),
    effects: ['look started', 'look left'],
  },
  yes: {
    begin: (site) => asked(site, 'pay', 'approval-requested'),
    act: (chat) => approve(chat, true),
    effect: (chat) => chat.shows(CALLING + ALL),
    effects: ['pay started', 'pay ended'],
  },
  output: {
    begin: (site) => asked(site, 'locate', 'input-available'),
    act: (chat) => located(chat, { output: 'Oslo' }),
    effect: (chat) => chat.shows(CALLING + ALL),
    effects: [],
  },
  message: {
    begin: (site) => site.page(),
    act: (chat, site) => chat.send(`all ${site.id}`),
    effect: (chat) => chat.shows(ALL),
    effects: [],
  },
};

async function asked(site: Site, tool: string, state: string): Promise<ChatPage> {
  const chat = await calling(site, tool, state);
  await chat.status('ready');
  return chat;
}

const { positionals } = parseArgs({ allowPositionals: true });
const [seconds = '60', count = '10', outage = 'cut', name = 'stop'] = positionals;
const { begin, act, effect, effects } = ACTS[name]!;

/** How long a request of another client takes when the server answers again: what the machine can do. */
const bare: number[] = [];

async function measureBare(site: Site, since: number): Promise<void> {
  await site.messages();
  bare.push(Date.now() - since);
}

/** Returns how long it took after the server had answered again. */
async function measure(site: Site): Promise<number> {
  const chat = await begin(site);
  const away = (isAway: boolean): void => (outage === 'silent' ? site.silence(isAway) : site.cut(isAway));
  away(true);
  await act(chat, site);
  await wait(Number(seconds) * 1_000);
  const since = Date.now();
  away(false);
  const reading = measureBare(site, since);
  await effect(chat, site);
  const tookMs = Date.now() - since;
  await reading;
  site.release();
  await callsEnd(chat, site);
  await site.agree();
  if (JSON.stringify(site.effects) !== JSON.stringify(effects)) throw new Error(`${site.effects.join(', ')}`);
  return tookMs;
}

async function callsEnd(chat: ChatPage, site: Site): Promise<void> {
  if (name === 'stop') await callIs(chat, 'output-error');
  await chat.page.waitForSelector('#stopping', { state: 'detached' });
  await chat.status('ready');
  await until(async () => (await site.messages()).length > 0);
}

await using server = await borrowPostgres();
await using harness = await openHarness({ kind: 'reply', store: server.url });
const took: number[] = [];
const failures: string[] = [];
while (took.length + failures.length < Number(count)) {
  const left = Number(count) - took.length - failures.length;
  const rounds = Array.from({ length: Math.min(TOGETHER, left) }, async () => {
    await using site = await harness.open();
    await measure(site).then(
      (ms) => took.push(ms),
      (error: unknown) => failures.push(String((error as Error).stack)),
    );
  });
  await Promise.all(rounds);
}
const inTime = took.filter((ms) => ms <= MAX_MS).length;
const describe = (times: readonly number[]): string => {
  const sorted = times.toSorted((one, other) => one - other);
  return `median ${sorted[Math.floor(sorted.length / 2)]} ms, longest ${sorted.at(-1)} ms`;
};
const figures = `${describe(took)}; a bare request: ${describe(bare)}; load ${loadavg()[0]!.toFixed(0)}`;
console.log(`${name}, ${outage} for ${seconds} s: ${inTime} of ${count} within ${MAX_MS} ms; ${figures}`);
for (const failure of failures) console.log(failure);
process.exitCode = inTime < Number(count) ? 1 : 0;
