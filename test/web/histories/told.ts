// How soon another browser shows what a page does:
//   npm run long -- page-told [ROUNDS] [memory|postgres]

import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import type { Page } from 'playwright-core';
import { borrowPostgres } from '../../servers/borrow.ts';
import { HALF } from '../browser.ts';
import { approve, callIs } from '../scenarios/acts.ts';
import { openHarness, type Site } from '../scenarios/harness.ts';

const GOAL_MS = 300;

const { positionals } = parseArgs({ allowPositionals: true });
const [rounds = '20', name = 'postgres'] = positionals;

/** What is on a page, as its time: the pages and this process have one clock. */
const at = async (page: Page, isThere: (wanted: string) => boolean, wanted = ''): Promise<number> => {
  const found = await page.waitForFunction(
    `(${isThere.toString()})(${JSON.stringify(wanted)}) && Date.now()`,
    undefined,
    { polling: 'raf' },
  );
  return (await found.jsonValue()) as number;
};
const isSaid = (text: string): boolean =>
  [...document.querySelectorAll('p.user')].some(({ textContent }) => textContent === text);
const isWritten = (text: string): boolean => [...document.querySelectorAll('p.assistant')].at(-1)?.textContent === text;
const isState = (state: string): boolean => [...document.querySelectorAll('code')].at(-1)?.textContent === state;
const isAnswered = (): boolean =>
  !['approval-requested', 'approval-responded'].includes(
    [...document.querySelectorAll('code')].at(-1)?.textContent ?? '',
  );
const isStopped = (): boolean => document.querySelector('footer') !== null;

const took: Record<'message' | 'words' | 'stop' | 'question' | 'answer', number[]> = {
  message: [],
  words: [],
  stop: [],
  question: [],
  answer: [],
};

async function measure(site: Site): Promise<void> {
  const phone = await site.elsewhere();
  const chat = await site.page();
  const said = `half ${site.id}`;
  let since = Date.now();
  await chat.send(said);
  took.message.push((await at(phone.page, isSaid, said)) - since);
  const [own, others] = await Promise.all([at(chat.page, isWritten, HALF), at(phone.page, isWritten, HALF)]);
  took.words.push(Math.max(0, others - own));
  since = Date.now();
  await phone.page.click('button');
  took.stop.push((await at(chat.page, isStopped)) - since);
  for (const one of [chat, phone]) await one.status('ready');
  await chat.send(`call pay ${site.id}`);
  const asked = await Promise.all([chat, phone].map(({ page }) => at(page, isState, 'approval-requested')));
  took.question.push(Math.max(0, asked[1]! - asked[0]!));
  for (const one of [chat, phone]) await one.status('ready');
  since = Date.now();
  await approve(phone, true);
  took.answer.push((await at(chat.page, isAnswered)) - since);
  site.release();
  for (const one of [chat, phone]) await callIs(one, 'output-available');
}

await using stack = new AsyncDisposableStack();
const store = name === 'memory' ? 'memory' : stack.use(await borrowPostgres()).url;
const harness = stack.use(await openHarness({ kind: 'reply', mode: 'production', store, isAlone: name === 'memory' }));
for (let round = 0; round < Number(rounds); round++) {
  await using site = await harness.open();
  await measure(site);
}
let isMissed = false;
for (const [what, times] of Object.entries(took)) {
  const sorted = times.toSorted((one, other) => one - other);
  const p50 = sorted[Math.floor(sorted.length / 2)]!;
  isMissed ||= p50 > GOAL_MS;
  console.log(`${what}: p50 ${p50} ms, longest ${sorted.at(-1)} ms`);
}
console.log(`${name}, ${rounds} rounds, load ${loadavg()[0]!.toFixed(0)}; goal: p50 of at most ${GOAL_MS} ms`);
process.exitCode = isMissed ? 1 : 0;
