// An application as the AI SDK's pages on message persistence and resumable streams teach it, before and after its conversion.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { forChange } from '../night.ts';
import { until } from '../promises/fixture.ts';
import { bundlePage, launchBrowser } from '../web/chat-page.ts';

const ROOT = join(import.meta.dirname, '../..');
const APP = join(ROOT, 'examples/apps/trip-chat');

interface Said {
  readonly role: string;
  readonly content: unknown;
}

/** The model follows the traveller's words, and calls a tool again as long as it may. */
function think(body: { readonly messages: readonly Said[]; readonly tool_choice?: string }, gate: Promise<unknown>) {
  const asked = body.messages.map(({ role, content }) => (role === 'user' ? JSON.stringify(content) : ''));
  const last = asked.findLast((text) => text !== '')!;
  const isAnswered = body.messages.at(-1)!.role === 'tool';
  if (body.tool_choice === 'none') return { parts: [{ text: 'It is warm.' }] };
  if (/weather/i.test(last)) return { parts: [{ call: 'weather', input: { city: 'Rome' } }] };
  if (/book/i.test(last) && !isAnswered) return { parts: [{ call: 'book', input: { city: 'Rome' } }] };
  if (/story/i.test(last)) return { parts: [{ text: ['Once ', 'upon ', { stall: gate }, 'a time.'] }] };
  return { parts: [{ text: 'Fine.' }] };
}

async function openTrips(kind: 'before' | 'after', browser: Browser) {
  await using stack = new AsyncDisposableStack();
  mkdirSync(join(ROOT, '.cache'), { recursive: true });
  // Below the repository, so that the packages are found.
  const folder = mkdtempSync(join(ROOT, '.cache/trip-chat-'));
  stack.defer(() => rmSync(folder, { recursive: true }));
  for (const part of ['shared', kind]) cpSync(join(APP, part), folder, { recursive: true });
  mkdirSync(join(folder, 'dist'));
  writeFileSync(join(folder, 'dist/index.html'), '<div id=root></div><script type=module src=page.js></script>');
  writeFileSync(join(folder, 'dist/page.js'), await bundlePage({ page: join(folder, 'page.tsx') }));
  const gate = Promise.withResolvers<void>();
  const provider = await startLoopbackProvider({
    script: ({ body }) => think(body as Parameters<typeof think>[0], gate.promise),
  });
  stack.defer(() => provider.close());
  const DATABASE = join(folder, 'trips.db');
  const child = spawn(process.execPath, ['--conditions=@whoa/source', '--no-warnings', 'server.ts'], {
    cwd: folder,
    env: {
      ...process.env,
      PORT: '0',
      DATABASE,
      LOOKUP_MS: '700',
      OPENAI_BASE_URL: provider.url,
      OPENAI_API_KEY: 'none',
    },
    // The chat that breaks is logged.
    stdio: ['ignore', 'pipe', kind === 'before' ? 'ignore' : 'inherit'],
  });
  const exited = once(child, 'exit');
  stack.defer(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const [printed] = (await once(child.stdout, 'data')) as [Buffer];
  const db = new DatabaseSync(DATABASE, { timeout: 5_000 });
  stack.defer(() => db.close());
  const context = await browser.newContext();
  stack.defer(() => context.close());
  const page = await context.newPage();
  await page.goto(String(printed).trim());
  await page.fill('[name=user]', 'ada');
  await page.click('text=Log in');
  await page.waitForSelector('[name=text]');
  const opened = stack.move();
  return {
    page,
    provider,
    letGo: gate.resolve,
    log: () =>
      db
        .prepare('SELECT what FROM log ORDER BY entry')
        .all()
        .map(({ what }) => String(what)),
    stored: () => String(db.prepare('SELECT messages FROM chats').get()?.['messages']),
    async say(text: string) {
      await page.fill('[name=text]', text);
      await page.click('text=Send');
    },
    ready: () => page.waitForSelector('button:text("Send")'),
    shown: () => readArticles(page),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

const readArticles = (page: Page): Promise<readonly string[]> =>
  page.$$eval('article', (all) =>
    all.map((article) => [...article.children].map(({ textContent }) => textContent).join(' | ')),
  );

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

test.for(forChange(['before', 'after'] as const, (kind) => kind === 'after'))(
  'options, billing, data, metadata, history and resuming have their effect; only a Stop differs (%s)',
  async (kind) => {
    await using trips = await openTrips(kind, browser);
    const { page, provider, shown } = trips;
    await page.fill('[name=city]', 'Oslo');
    await page.check('[name=brief]');
    await trips.say('How is the weather?');
    await page.waitForSelector('text=Thinking…');
    await page.waitForSelector('text=Rome: looking…');
    await trips.ready();
    const reply = 'Rome: 21 degrees | Rome: 21 degrees | It is warm. | gpt-5-mini, 93 tokens';
    const expected = ['How is the weather? | From Oslo', reply];
    expect(await shown()).toEqual(expected);
    expect(await page.textContent('[role=status]')).toBe('');
    // What the page sent, and the step that must answer.
    const sent = provider.requests.map(({ body }) => JSON.stringify(body));
    expect(
      sent.every((body) => body.includes('"max_completion_tokens":500,') && body.includes('(I am in Oslo.)')),
    ).toBe(true);
    expect(sent.map((body) => body.includes('"tool_choice":"none"'))).toEqual([false, false, true]);
    await until(() => trips.log().at(-1) === 'replied');
    const step = ['lookup started', 'lookup ended', 'billed 11'];
    expect(trips.log()).toEqual([...step, ...step, 'billed 11', 'replied']);

    // A reload in the middle of a reply, and a Stop: its text stays.
    await page.reload();
    await page.waitForSelector('article');
    expect(await shown()).toEqual(expected);
    await trips.say('Tell me a story');
    await page.waitForSelector('text=Once upon');
    expect(JSON.stringify(provider.requests.at(-1)!.body)).toContain('21 degrees in Rome');
    await page.reload();
    await page.waitForSelector('text=Once upon');
    await page.click('text=Stop');
    await trips.ready();
    await until(() => trips.log().at(-1) === 'stopped');
    await trips.say('Thanks');
    await page.waitForSelector('text=Fine.');
    await trips.ready();
    expected.push('Tell me a story', 'Once upon  | gpt-5-mini, … tokens', 'Thanks', 'Fine. | gpt-5-mini, 31 tokens');
    expect(await shown()).toEqual(expected);
    await page.reload();
    await page.waitForSelector('text=Fine.');
    expect(await shown()).toEqual(expected);

    // A Stop during a booking: the page shows how it ends, or the chat is broken.
    await trips.say('Book a room');
    await until(() => trips.log().includes('booking Rome'));
    await page.click('text=Stop');
    await trips.ready();
    await until(() => trips.log().includes('booked Rome'));
    await page.reload();
    await page.waitForSelector('.book');
    expect(await page.textContent('.book')).toBe(kind === 'after' ? 'A room in Rome is booked' : 'Booking…');
    await trips.say('Good');
    await page.waitForSelector(kind === 'after' ? 'article:nth-of-type(10) >> text=Fine.' : '[role=alert]');
    await trips.ready();
  },
);
