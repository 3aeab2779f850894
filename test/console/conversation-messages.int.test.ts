// Every page shows what happened to the messages of a conversation, and live output is followed.
import type { Policy } from '@whoa/core';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type GatedConsole, startGatedConsole } from './gated-console.ts';

let rig: GatedConsole;
beforeAll(async () => {
  rig = await startGatedConsole();
}, 120_000);
afterAll(async () => {
  await rig?.[Symbol.asyncDispose]();
});
afterEach(() => rig.closePages());

/** Sends a message, and returns its task. */
async function tell(conversation: string, input: string, policy: Policy): Promise<string> {
  const receipt = await rig.client.create({ agent: 'worker', input, conversation, policy });
  return (receipt as { task: { id: string } }).task.id;
}

async function begin(conversation: string): Promise<string> {
  const id = await tell(conversation, `Begin ${conversation}`, 'queue');
  await rig.gates(conversation).replies.open('call');
  await rig.gates(conversation).calls.arrival();
  return id;
}

interface Told {
  readonly id: string;
  readonly status: string;
  readonly words: RegExp;
  /** The task that it links to. */
  readonly to?: string;
}

/** Looks at a message that got no run where people look: its page, its report, its conversation, and the list. */
async function expectTold(conversation: string, { id, status, words, to }: Told): Promise<void> {
  const page = await rig.open(`tasks/${id}`);
  const linksTo = async (): Promise<void> => {
    await page.getByText(words).first().waitFor();
    if (to !== undefined) await page.locator(`main a[href="/console/tasks/${to}"]`).first().waitFor();
    const isSaid = (await page.getByText('so it had no effect').count()) > 0;
    expect(isSaid).toBe(words.source.includes('no effect'));
  };
  await linksTo();
  expect(await page.locator('h1 + .st').innerText()).toBe(status);
  await page.goto(new URL(`/console/tasks/${id}/report`, page.url()).href);
  await page.getByText('It never began').waitFor();
  await linksTo();
  await page.goto(new URL(`/console/?conversation=${conversation}&q=${id}`, page.url()).href);
  await page.getByRole('cell', { name: status, exact: true }).waitFor();
  expect(await page.getByRole('link', { name: 'Report', exact: true }).count()).toBe(0);
  await page.goto(new URL(`/console/conversations/${conversation}`, page.url()).href);
  await linksTo();
  await page.close();
}

test('a message that was delivered to a run is shown as delivered, with a link to the run', async () => {
  const run = await begin('told');
  const id = await tell('told', 'Be quick', 'steer');
  const page = await rig.open('conversations/told');
  await page.getByText('on its way: the run reads it before its next step').waitFor();
  await rig.gates('told').calls.open('end');
  await page.getByText('delivered to this run').waitFor();
  await expectTold('told', { id, status: 'steered', words: /delivered to a run in progress/, to: run });
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await page.getByRole('link', { name: 'Stop report' }).waitFor();
  expect(await page.getByRole('link', { name: 'Stop report' }).getAttribute('href')).toBe(
    `/console/tasks/${run}/report`,
  );
  await expectTold('told', { id, status: 'steered', words: /delivered to a run in progress/, to: run });
});

test('merged, superseded and stopped messages are shown as such, with a link to the message that replaced them', async () => {
  await begin('passed');
  const merged = await tell('passed', 'Two', 'merge');
  const superseded = await tell('passed', 'Three', 'merge');
  await expectTold('passed', { id: merged, status: 'merged', words: /merged with a newer message/, to: superseded });
  const page = await rig.open('conversations/passed');
  await page.getByText('queued: it is next when the run before it has ended').waitFor();
  const newest = await tell('passed', 'Four', 'replace');
  const words = /A newer message took its place/;
  await expectTold('passed', { id: superseded, status: 'superseded', words: /took its place.*no effect/, to: newest });
  await page.getByText(words).first().waitFor();
  await page.getByText('The run is being stopped. A message waits until it has ended.').waitFor();
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await expectTold('passed', {
    id: newest,
    status: 'stopped',
    words: /It was stopped before it began, so it had no effect/,
  });
});

test('a message is sent with a choice only while something runs, and stops nothing that its sender did not see', async () => {
  const page = await rig.open('conversations/choice');
  const choices = page.getByRole('radiogroup', { name: 'What a new message does' });
  const send = async (words: string): Promise<void> => {
    await page.getByLabel('Message', { exact: true }).fill(words);
    await page.getByRole('button', { name: 'Send' }).click();
  };
  await page.getByLabel('Agent').waitFor();
  expect(await choices.count()).toBe(0);
  await send('Begin choice');
  await choices.waitFor();
  expect((await choices.innerText()).split('\n').filter(Boolean)).toEqual([
    'Tell it now',
    'After this',
    'Stop and do this instead',
  ]);
  await page.getByRole('radio', { name: 'Stop and do this instead' }).check();
  await rig.gates('choice').replies.open('end');
  await choices.waitFor({ state: 'detached' });
  // Another client begins something that this page has not seen: it does not look while it is hidden.
  await page.evaluate(() => Object.defineProperty(document, 'hidden', { value: true, configurable: true }));
  const other = await begin('choice-2');
  await rig.client.cancel(other);
  const unseen = await tell('choice', 'Unseen', 'queue');
  await rig.gates('choice').replies.open('call');
  await rig.gates('choice').calls.arrival();
  await send('Hello');
  await expect.poll(async () => (await rig.client.list({ conversation: 'choice' })).tasks.length).toBe(3);
  expect((await rig.client.get(unseen))?.status).toBe('running');
  await rig.client.cancelConversation('choice', { mode: 'now' });
});

const distance = (page: Page): Promise<number> =>
  page.locator('.msgs').evaluate((box) => Math.round(box.scrollHeight - box.scrollTop - box.clientHeight));

test.each([
  ['desktop', { width: 1280, height: 700 }],
  ['phone', { width: 390, height: 700 }],
])('live output stays in view on a %s while its reader is at the end, and only then', async (name, size) => {
  const conversation = `output-${name}`;
  await begin(conversation);
  const { calls } = rig.gates(conversation);
  const page = await rig.open(`conversations/${conversation}`, size);
  await page.getByText('work', { exact: true }).waitFor();
  await calls.open('print');
  await page.getByText('line 30').waitFor();
  await expect.poll(() => distance(page)).toBeLessThan(2);
  await page.locator('.msgs').hover();
  await page.mouse.wheel(0, -300);
  await expect.poll(() => distance(page)).toBeGreaterThan(200);
  const top = await page.locator('.msgs').evaluate((box) => box.scrollTop);
  await calls.open('print');
  await page.getByText('line 60').waitFor();
  expect(await page.locator('.msgs').evaluate((box) => box.scrollTop)).toBe(top);
  await page.mouse.wheel(0, 10_000);
  await expect.poll(() => distance(page)).toBeLessThan(2);
  await calls.open('print');
  await page.getByText('line 90').waitFor();
  await expect.poll(() => distance(page)).toBeLessThan(2);
  await rig.client.cancelConversation(conversation, { mode: 'now' });
});

test('no page reported an error', () => {
  expect(rig.problems).toEqual([]);
});
