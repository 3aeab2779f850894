// A question outlives its server: asked on one, which is deployed away, and answered in another tab, on another server.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { expect, test } from 'vitest';
import { isNight } from '../night.ts';
import { readLines } from '../promises/fixture.ts';
import { borrowPostgres } from '../servers/borrow.ts';
import { type Child, startProgram } from '../tasks/child.ts';
import { bundlePage, type ChatPage, launchBrowser, openPage } from './chat-page.ts';

const callIs = (chat: ChatPage, state: string) =>
  chat.page.waitForFunction((wanted) => document.querySelector('code')?.textContent === wanted, state);

async function startServer(...args: string[]): Promise<{ child: Child; url: string }> {
  const child = startProgram(join(import.meta.dirname, 'programs/asking-server.ts'), args);
  return { child, url: (await child.hear<{ type: string; url: string }>(({ type }) => type === 'listening')).url };
}

const locateIf = (body: unknown) =>
  JSON.stringify(body).includes('Locate') ? [{ call: 'locate', id: 'l1', input: {} }] : [];

/** Where servers share a store, a provider and the page. */
async function openShop(stack: AsyncDisposableStack, kind: 'loop' | 'agent') {
  const { url } = stack.use(await borrowPostgres());
  const folder = mkdtempSync(join(tmpdir(), 'whoa-deployed-'));
  stack.defer(() => rmSync(folder, { recursive: true }));
  const [script, paid] = [join(folder, 'page.js'), join(folder, 'paid')];
  writeFileSync(script, await bundlePage());
  writeFileSync(paid, '');
  const provider = await startLoopbackProvider({
    script: ({ body }) =>
      JSON.stringify(body).includes('"tool_call_id"')
        ? { parts: [{ text: 'It is paid.' }] }
        : { parts: [{ text: 'May I? ' }, { call: 'pay', id: 'p1', input: { eur: 900 } }, ...locateIf(body)] },
  });
  stack.defer(() => provider.close());
  const start = async () => {
    const server = await startServer(JSON.stringify({ backend: 'postgres', url }), provider.url, script, paid, kind);
    stack.defer(() => server.child[Symbol.asyncDispose]());
    return server;
  };
  return { start, paid };
}

test.runIf(isNight).each(['loop', 'agent'] as const)(
  'asked on a server that is deployed away, answered by another tab: the same message continues (%s)',
  async (kind) => {
    await using stack = new AsyncDisposableStack();
    const { start, paid } = await openShop(stack, kind);
    const [first, second] = await Promise.all([start(), start()]);
    const browser = await launchBrowser();
    stack.defer(() => browser.close());
    const context = await browser.newContext();

    const asking = await openPage(await context.newPage(), `${first.url}/?id=c`);
    await asking.send('Pay 900');
    await callIs(asking, 'approval-requested');
    await asking.status('ready');
    const id = await asking.evaluate((page) => page.chat.messages.at(-1)!.id);
    first.child.process.kill('SIGTERM');
    expect(await first.child.ended).toBe(0);
    expect(readLines(paid)).toEqual([]);

    const answering = await openPage(await context.newPage(), `${second.url}/?id=c`);
    await callIs(answering, 'approval-requested');
    await answering.evaluate((page) => {
      const part = page.chat.messages.at(-1)!.parts.find((one) => 'approval' in one) as unknown;
      void page.chat.addToolApprovalResponse({
        id: (part as { approval: { id: string } }).approval.id,
        approved: true,
      });
    });
    await answering.shows('May I? It is paid.');
    await answering.status('ready');
    await callIs(answering, 'output-available');
    expect(await answering.evaluate((page) => page.chat.messages.map((message) => message.id).slice(1))).toEqual([id]);
    expect(await answering.evaluate((page) => page.errors)).toEqual([]);
    expect(readLines(paid)).toEqual([`${second.child.process.pid} 900`]);
    // A tab that opens later shows the same.
    const later = await openPage(await context.newPage(), `${second.url}/?id=c`);
    await later.shows('May I? It is paid.');
    expect(await later.replies()).toHaveLength(1);
    second.child.process.kill('SIGTERM');
    expect(await second.child.ended).toBe(0);
  },
);

test('a page that waits shows what someone else answers, and Stop closes its question', async () => {
  await using stack = new AsyncDisposableStack();
  const { start, paid } = await openShop(stack, 'agent');
  const [server, other] = await Promise.all([start(), start()]);
  const browser = await launchBrowser();
  stack.defer(() => browser.close());
  const context = await browser.newContext();
  const ask = async (id: string, text = 'Pay 900'): Promise<ChatPage> => {
    const page = await openPage(await context.newPage(), `${server.url}/?id=${id}`);
    await page.send(text);
    await callIs(page, 'approval-requested');
    await page.status('ready');
    return page;
  };
  const answerElsewhere = async (id: string, page: ChatPage): Promise<void> => {
    const approvalId = await page.evaluate((own) => {
      const part = own.chat.messages.at(-1)!.parts.find((one) => 'approval' in one) as unknown;
      return (part as { approval: { id: string } }).approval.id;
    });
    const answered = await fetch(`${other.url}/api/chat/${id}/approve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ approvalId, approved: true }),
    });
    expect(await answered.json()).toEqual({ result: 'accepted' });
  };

  const waiting = await ask('a');
  await answerElsewhere('a', waiting);
  await waiting.shows('May I? It is paid.');
  await waiting.status('ready');
  await callIs(waiting, 'output-available');
  expect(await waiting.replies()).toEqual(['May I? It is paid.']);
  expect(readLines(paid)).toHaveLength(1);

  const stopped = await ask('b');
  await stopped.page.click('button');
  await callIs(stopped, 'output-error');
  await stopped.page.waitForSelector('footer');
  await stopped.status('ready');
  expect(await stopped.replies()).toEqual(['May I? ']);
  expect(readLines(paid)).toHaveLength(1);

  // A tool that runs in the page is not run again when the message is read again.
  const locating = await ask('c', 'Locate me and pay 900');
  await answerElsewhere('c', locating);
  await callIs(locating, 'output-available');
  await locating.status('ready');
  const locates = await locating.evaluate((page) => page.inPage.filter((one) => one.startsWith('locate')));
  expect(locates).toEqual(['locate started']);
  await locating.page.click('button');
  await locating.page.waitForFunction(() => document.querySelectorAll('code')[1]?.textContent === 'output-error');
  for (const page of [waiting, stopped, locating]) expect(await page.evaluate((own) => own.errors)).toEqual([]);
});
