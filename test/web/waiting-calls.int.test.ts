// Calls that wait for a person or run in the page, in a real browser with the real `useChat`.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { forChange } from '../night.ts';
import { until } from '../promises/fixture.ts';
import { ALL, type ChatSite, HALF, type Lab, openLab } from './browser.ts';
import type { ChatPage } from './chat-page.ts';
import type { ChatWindow } from './page.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await openLab();
});
afterAll(() => lab[Symbol.asyncDispose]());

/** A chat whose reply has ended with a call that waits. */
async function waiting(site: ChatSite, tool: string, state: string) {
  const chat = await site.page();
  await chat.send(`ask for ${tool}`);
  await chat.status('ready');
  await chat.page.waitForFunction((wanted) => document.querySelector('code')?.textContent === wanted, state);
  return chat;
}

const MODES = [
  ['once', {}],
  ['in StrictMode', { strict: true }],
] as const;
/** StrictMode, which does everything twice, waits for the night but for one test. */
const CHOSEN = forChange(MODES, (_, index) => index === 0);

test.for(CHOSEN)('the page shows the question, and a yes continues the reply (%s)', async ([, mode]) => {
  await using site = lab.open(mode);
  const chat = await waiting(site, 'pay', 'approval-requested');
  await chat.evaluate((page) => {
    const part = page.chat.messages.at(-1)!.parts.find((one) => one.type === 'tool-pay') as unknown;
    const { id } = (part as { approval: { id: string } }).approval;
    void page.chat.addToolApprovalResponse({ id, approved: true });
  });
  await chat.shows(ALL);
  await chat.status('ready');
  expect(await chat.page.textContent('code')).toBe('output-available');
  expect(await chat.evaluate((page) => page.errors)).toEqual([]);
  expect(await site.ends()).toEqual(['success', 'success']);
});

test.for(CHOSEN)('Stop closes a question, though no run exists, and every page shows that (%s)', async ([, mode]) => {
  await using site = lab.open(mode);
  const chat = await waiting(site, 'pay', 'approval-requested');
  await chat.page.click('button');
  await chat.page.waitForFunction(() => document.querySelector('code')?.textContent === 'output-error');
  expect(site.stops()).toBe(1);
  const other = await site.page(1);
  await other.page.waitForSelector('code');
  expect(await other.page.textContent('code')).toBe('output-error');
  await chat.send('say all room');
  await chat.shows(ALL);
});

test('after Stop, an approved call that must finish shows its result and no question', async () => {
  await using site = lab.open();
  const chat = await waiting(site, `confirm ${site.id}`, 'approval-requested');
  await answer(chat, true);
  await until(async () => (await site.tasks()).length === 2);
  // Nothing of the reply has been streamed yet.
  await chat.page.click('button');
  await until(() => site.stops() === 1);
  await chat.page.waitForSelector('#stopping', { state: 'attached' });
  site.release();
  await callIs(chat, 'output-available');
  await chat.page.waitForSelector('#stopping', { state: 'detached' });
  await chat.status('ready');
  expect(await site.ends()).toEqual(['success', 'cancelled']);
  expect(await chat.page.textContent('code')).toBe('output-available');
  expect(await chat.evaluate((page) => page.errors)).toEqual([]);
});

test.for(CHOSEN)('Stop reaches a tool that runs in the page (%s)', async ([, mode]) => {
  await using site = lab.open(mode);
  const chat = await waiting(site, 'locate', 'input-available');
  expect(await chat.evaluate((page) => page.inPage)).toEqual(['locate started']);
  await chat.page.click('button');
  await chat.page.waitForFunction(() => document.querySelector('code')?.textContent === 'output-error');
  expect(await chat.evaluate((page) => page.inPage)).toEqual(['locate started', 'locate stopped: AbortError']);
  expect(await chat.evaluate((page) => page.errors)).toEqual([]);
});

const answer = (chat: ChatPage, approved: boolean): Promise<void> =>
  chat.page.evaluate((yes) => {
    const { chat: own } = window as unknown as ChatWindow;
    const part = own.messages.at(-1)!.parts.find((one) => 'approval' in one) as unknown;
    void own.addToolApprovalResponse({ id: (part as { approval: { id: string } }).approval.id, approved: yes });
  }, approved);

const callIs = (chat: ChatPage, state: string) =>
  chat.page.waitForFunction((wanted) => document.querySelector('code')?.textContent === wanted, state);

test.for(CHOSEN)('a question that one tab answers is answered in the others (%s)', async ([, mode]) => {
  await using site = lab.open(mode);
  const other = await site.page();
  const chat = await waiting(site, 'pay', 'approval-requested');
  await callIs(other, 'approval-requested');
  await answer(chat, false);
  for (const tab of [chat, other]) {
    await tab.shows(ALL);
    await tab.status('ready');
    expect(await tab.page.textContent('code')).toBe('output-denied');
    expect(await tab.evaluate((page) => page.errors)).toEqual([]);
  }
  expect(site.requests).toEqual(['send', 'send']);
});

test('a page of another browser that answers too late is shown what counts, and no error', async () => {
  await using site = lab.open();
  const chat = await waiting(site, 'pay', 'approval-requested');
  const other = await site.elsewhere();
  await callIs(other, 'approval-requested');
  await answer(chat, true);
  await chat.shows(ALL);
  await answer(other, false);
  await other.shows(ALL);
  await other.status('ready');
  expect(await other.page.textContent('code')).toBe('output-available');
  expect(await other.evaluate((page) => page.errors)).toEqual([]);
  expect((await other.finishes()).every(({ isError }) => !isError)).toBe(true);
});

test.for(MODES)('a tool runs in the tab that asked, and the stop of another tab reaches it (%s)', async ([, mode]) => {
  await using site = lab.open(mode);
  const other = await site.page();
  const chat = await waiting(site, 'locate', 'input-available');
  await callIs(other, 'input-available');
  await other.page.click('button');
  for (const tab of [chat, other]) await callIs(tab, 'output-error');
  expect(await chat.evaluate((page) => page.inPage)).toEqual(['locate started', 'locate stopped: AbortError']);
  expect(await other.evaluate((page) => page.inPage)).toEqual([]);
  expect(site.stops()).toBe(1);
});

test('a continued reply that loses its connection continues by itself, without a gap, a repeat or an error', async () => {
  await using site = lab.open();
  const chat = await site.page();
  await chat.send(`say half ${site.id} and ask for pay`);
  await callIs(chat, 'approval-requested');
  await answer(chat, true);
  await chat.shows(HALF);
  site.cut();
  await chat.page.waitForSelector('#reconnecting', { state: 'attached' });
  await chat.page.waitForSelector('#reconnecting', { state: 'detached' });
  site.release();
  await chat.shows(ALL);
  await chat.status('ready');
  expect(await chat.replies()).toEqual([ALL]);
  expect(await chat.evaluate((page) => page.errors)).toEqual([]);
  expect(await chat.finishes()).toMatchObject([{ isError: false }, { isError: false }]);
});

test('a page that is loaded again runs the tool that it had begun again, and a copy of the tab does not', async () => {
  await using site = lab.open();
  const chat = await waiting(site, 'locate', 'input-available');
  const copy = await site.page();
  await copy.page.waitForSelector('code');
  await chat.page.reload();
  await chat.page.waitForFunction(() => (window as unknown as ChatWindow).inPage.length > 0);
  expect(await chat.evaluate((page) => page.inPage)).toEqual(['locate started']);
  await chat.page.evaluate(() => {
    const { chat: own } = window as unknown as ChatWindow;
    const part = own.messages.at(-1)!.parts.find((one) => one.type === 'tool-locate') as unknown;
    const { toolCallId } = part as { toolCallId: string };
    void own.addToolOutput({ tool: 'locate', toolCallId, output: 'Oslo' } as never);
  });
  for (const one of [chat, copy]) await one.shows(ALL);
  expect(await copy.evaluate((page) => page.inPage)).toEqual([]);
  await chat.page.reload();
  await chat.status('ready');
  expect(await chat.evaluate((page) => page.inPage)).toEqual([]);
});
