// Calls that wait for a person or run in the page, in a real browser with the real `useChat`.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ALL, type ChatSite, type Lab, openLab } from './browser.ts';

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

test.for(MODES)('the page shows the question, and a yes continues the reply (%s)', async ([, mode]) => {
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

test.for(MODES)('Stop closes a question, though no run exists, and every page shows that (%s)', async ([, mode]) => {
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

test.for(MODES)('Stop reaches a tool that runs in the page (%s)', async ([, mode]) => {
  await using site = lab.open(mode);
  const chat = await waiting(site, 'locate', 'input-available');
  expect(await chat.evaluate((page) => page.inPage)).toEqual(['locate started']);
  await chat.page.click('button');
  await chat.page.waitForFunction(() => document.querySelector('code')?.textContent === 'output-error');
  expect(await chat.evaluate((page) => page.inPage)).toEqual(['locate started', 'locate stopped: AbortError']);
  expect(await chat.evaluate((page) => page.errors)).toEqual([]);
});
