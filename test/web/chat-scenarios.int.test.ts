// What people do with a chat, in a real browser with the real `useChat`. Only a stop may stop a run.
import type { Route } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { forChange } from '../night.ts';
import { until } from '../promises/fixture.ts';
import { ALL, type ChatSite, HALF, type Lab, openLab } from './browser.ts';
import type { ChatPage } from './chat-page.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await openLab();
});
afterAll(() => lab[Symbol.asyncDispose]());

/** A chat whose model has said half of its reply. */
async function half(site: ChatSite) {
  const chat = await site.page();
  await chat.send(`say half ${site.id}`);
  await chat.shows(HALF);
  return chat;
}

/** In StrictMode React mounts everything twice. */
const MODES = [
  ['over HTTP', {}],
  ['over HTTP, in StrictMode', { strict: true }],
] as const;

describe.each(forChange(MODES, (_, index) => index === 0))('%s', (_, mode) => {
  const open = () => lab.open(mode);

  test('a stop sends one request, cancels the run, and keeps the text', async () => {
    await using site = open();
    const chat = await half(site);
    await chat.stop();
    expect(await site.ends()).toEqual(['cancelled']);
    await chat.status('ready');
    expect(site.stops()).toBe(1);
    expect(await chat.replies()).toEqual([HALF]);
    expect((await site.tasks())[0]!.outcome).toMatchObject({
      reason: { kind: 'user', by: 'ada' },
      answer: HALF,
    });
  });

  test('the page that stops a reply sees how it ended', async () => {
    await using site = open();
    const chat = await half(site);
    await chat.stop();
    await until(async () => (await chat.finishes()).length > 0);
    expect(await chat.finishes()).toMatchObject([{ isAbort: true, isError: false }]);
    expect(await chat.page.textContent('footer')).toContain('"kind":"user"');
  });

  test('the button of the page stops too', async () => {
    await using site = open();
    const chat = await half(site);
    await chat.page.click('button');
    expect(await site.ends()).toEqual(['cancelled']);
    expect(site.stops()).toBe(1);
  });

  test('a reply continues after a reload without a gap or a repeat', async () => {
    await using site = open();
    const chat = await half(site);
    await chat.page.reload();
    await chat.shows(HALF);
    site.release();
    await chat.shows(ALL);
    await chat.status('ready');
    expect([site.stops(), await site.ends(), await chat.replies()]).toEqual([0, ['success'], [ALL]]);
  });

  test('leaving the view and returning does not stop the reply', async () => {
    await using site = open();
    const chat = await half(site);
    await chat.evaluate((page) => page.route(undefined));
    await chat.page.waitForSelector('#elsewhere');
    await chat.page.evaluate((id) => (window as unknown as { route(to: string): Promise<void> }).route(id), site.id);
    await chat.shows(HALF);
    site.release();
    await chat.shows(ALL);
    expect([site.stops(), await site.ends()]).toEqual([0, ['success']]);
  });

  test('showing another chat in the same view stops no reply', async () => {
    await using site = open();
    const chat = await half(site);
    await chat.evaluate((page) => page.route('another'));
    await chat.page.waitForFunction(() => document.querySelectorAll('p').length === 0);
    site.release();
    expect([site.stops(), await site.ends()]).toEqual([0, ['success']]);
    await chat.page.evaluate((id) => (window as unknown as { route(to: string): Promise<void> }).route(id), site.id);
    await chat.shows(ALL);
  });

  test('a reply continues after visiting another site and returning', async () => {
    await using site = open();
    const chat = await half(site);
    await chat.page.goto(`${site.servers[0]!.url}/elsewhere`);
    await chat.page.goBack();
    await chat.shows(HALF);
    site.release();
    await chat.shows(ALL);
    expect([site.stops(), await site.ends()]).toEqual([0, ['success']]);
  });

  test('a stop after a reload stops the same run', async () => {
    await using site = open();
    const chat = await half(site);
    await chat.page.reload();
    await chat.shows(HALF);
    await chat.stop();
    expect(await site.ends()).toEqual(['cancelled']);
    await chat.status('ready');
    expect([site.stops(), await chat.replies()]).toEqual([1, [HALF]]);
  });

  test('a second tab, on another server, stops it; the first one sees that', async () => {
    await using site = open();
    const first = await half(site);
    const second = await site.page(1);
    await second.shows(HALF);
    await second.stop();
    expect(await site.ends()).toEqual(['cancelled']);
    await first.status('ready');
    await until(async () => (await first.finishes()).length > 0);
    expect(await first.finishes()).toMatchObject([{ isAbort: true, isError: false }]);
    expect([await first.replies(), site.stops()]).toEqual([[HALF], 1]);
  });

  test('resuming twice does not stop the run', async () => {
    await using site = open();
    const chat = await half(site);
    await chat.page.reload();
    await chat.shows(HALF);
    await chat.evaluate((page) => void page.chat.resumeStream());
    site.release();
    await chat.shows(ALL);
    expect([site.stops(), await site.ends(), await chat.replies()]).toEqual([0, ['success'], [ALL]]);
  });
});

test('a reply that ends while the page is being opened is not missed', async () => {
  await using site = lab.open();
  const chat = await half(site);
  // The page has its messages, and asks for the reply when it has ended.
  await chat.page.route('**/stream', async (route) => {
    site.release();
    await site.ends();
    await route.continue();
  });
  await chat.page.reload();
  await chat.shows(ALL);
  expect([await chat.replies(), site.stops()]).toEqual([[ALL], 0]);
});

test('closing the tab does not stop the reply', async () => {
  await using site = lab.open();
  const chat = await half(site);
  await chat.page.close();
  site.release();
  expect([site.stops(), await site.ends()]).toEqual([0, ['success']]);
  const again = await site.page();
  await again.shows(ALL);
});

test('a stop arrives though the page is left in the same moment', async () => {
  await using site = lab.open();
  const chat = await half(site);
  await chat.evaluate((page) => {
    page.chat.stop().catch(() => {});
    location.href = '/elsewhere';
  });
  await chat.page.waitForURL('**/elsewhere');
  expect(await site.ends()).toEqual(['cancelled']);
});

/** Cuts a page off until what it returns is called. */
async function loseConnection(site: ChatSite, { page }: ChatPage): Promise<() => Promise<void>> {
  const lose = (route: Route): Promise<void> => route.abort('internetdisconnected');
  await page.route('**/stream', lose);
  site.cut();
  await page.waitForSelector('#reconnecting', { state: 'attached' });
  return async () => {
    await page.unroute('**/stream', lose);
    await page.evaluate(() => dispatchEvent(new Event('online')));
  };
}

test('a lost connection is opened again by itself, without a gap, a repeat or an error', async () => {
  await using site = lab.open();
  const chat = await half(site);
  site.cut();
  await chat.page.waitForSelector('#reconnecting', { state: 'attached' });
  await chat.page.waitForSelector('#reconnecting', { state: 'detached' });
  expect(await chat.replies()).toEqual([HALF]);
  site.cut();
  site.release();
  await chat.shows(ALL);
  await chat.status('ready');
  expect(await chat.finishes()).toEqual([{ isAbort: false, isDisconnect: false, isError: false }]);
  expect(await chat.evaluate((page) => page.errors)).toEqual([]);
  expect([await site.ends(), site.requests]).toEqual([['success'], ['send']]);
});

test('a reply that ended while the connection was lost is shown after it is restored', async () => {
  await using site = lab.open();
  const chat = await half(site);
  const restore = await loseConnection(site, chat);
  site.release();
  expect(await site.ends()).toEqual(['success']);
  expect(await chat.replies()).toEqual([HALF]);
  await restore();
  await chat.shows(ALL);
  await chat.status('ready');
  expect(await chat.evaluate((page) => page.errors)).toEqual([]);
});

test('a stop while the connection is lost stops the run, and the page shows how it settled', async () => {
  await using site = lab.open();
  const chat = await half(site);
  const restore = await loseConnection(site, chat);
  const receipt = chat.evaluate((page) => page.chat.stop());
  expect(await site.ends()).toEqual(['cancelled']);
  await chat.page.waitForSelector('#stopping', { state: 'attached' });
  await restore();
  await chat.page.waitForSelector('footer');
  expect(await receipt).toMatchObject({ result: 'accepted' });
  await chat.page.waitForSelector('#stopping', { state: 'detached' });
  await chat.status('ready');
});

test('a call that must finish is shown until it has, however long after the stop', async () => {
  await using site = lab.open();
  const chat = await site.page();
  await chat.send(`ask for charge ${site.id}`);
  await chat.page.waitForFunction(() => document.querySelector('code')?.textContent === 'input-available');
  const receipt = chat.evaluate((page) => page.chat.stop());
  await until(async () => (await site.tasks())[0]?.status === 'cancelling');
  await chat.page.waitForSelector('#stopping', { state: 'attached' });
  expect(await chat.page.textContent('code')).toBe('input-available');
  site.release();
  expect(await receipt).toMatchObject({ result: 'accepted' });
  await chat.page.waitForSelector('footer');
  expect(await chat.page.textContent('code')).toBe('output-available');
  await chat.page.waitForSelector('#stopping', { state: 'detached' });
  await chat.status('ready');
  expect(await site.ends()).toEqual(['cancelled']);
});

test('a stop before the first byte of the answer counts', async () => {
  await using site = lab.open();
  const chat = await site.page();
  const letGo = site.hold('send');
  await chat.send(`say half ${site.id}`);
  await until(() => site.requests.includes('send'));
  await chat.stop();
  expect(await site.ends()).toEqual(['cancelled']);
  letGo();
  await chat.status('ready');
  expect(site.stops()).toBe(1);
});

test('a stop any number of microtasks after the message leaves nothing running', async () => {
  await using site = lab.open();
  const chat = await site.page();
  for (const ticks of [0, 1, 2, 3, 4, 6, 10]) {
    await chat.page.evaluate(
      async ({ text, ticks: count }) => {
        const { chat: own } = window as unknown as {
          chat: Record<'sendMessage' | 'stop', (m?: object) => Promise<void>>;
        };
        const sent = own.sendMessage({ text });
        for (let tick = 0; tick < count; tick++) await Promise.resolve();
        await own.stop();
        await sent;
      },
      { text: `say half ${site.id}`, ticks },
    );
    await chat.status('ready');
    // It was stopped; if that came first, it is kept without a reply.
    await site.ends();
    for (const task of (await site.tasks()).filter(({ agent }) => agent === 'whoa-chat-reply'))
      expect(task).toMatchObject({ status: 'cancelled', outcome: { reason: { kind: 'user' } } });
  }
});

test('the next message immediately: the stop comes first, and the next run is whole', async () => {
  await using site = lab.open();
  const chat = await half(site);
  const letGo = site.hold('stop');
  const sent = chat.page.evaluate((text) => {
    const { chat: own } = window as unknown as { chat: { sendMessage(m: object): Promise<void>; stop(): unknown } };
    void own.stop();
    return own.sendMessage({ text });
  }, `say all ${site.id}`);
  await until(() => site.stops() === 1);
  letGo();
  await sent;
  await chat.shows(ALL);
  expect(site.requests).toEqual(['send', 'stop', 'send']);
  expect(await site.ends()).toEqual(['cancelled', 'success']);
});

test('pressing Stop three times sends one request', async () => {
  await using site = lab.open();
  const chat = await half(site);
  await chat.evaluate((page) => Promise.all([page.chat.stop(), page.chat.stop()]));
  await chat.stop();
  expect([await site.ends(), site.stops()]).toEqual([['cancelled'], 1]);
});

test('a stop that races the end never harms the next run', async () => {
  await using site = lab.open();
  const chat = await half(site);
  await chat.evaluate((page) => {
    (page as unknown as { stopSoon: Promise<unknown> }).stopSoon = new Promise((resolve) => setTimeout(resolve)).then(
      () => page.chat.stop(),
    );
  });
  site.release();
  await chat.evaluate((page) => (page as unknown as { stopSoon: Promise<unknown> }).stopSoon);
  await chat.status('ready');
  await chat.send(`say all ${site.id}`);
  await chat.shows(ALL);
  expect((await site.ends()).at(-1)).toBe('success');
});

test('a second message replaces the first; a stop then stops the second', async () => {
  await using site = lab.open();
  const chat = await half(site);
  await chat.send(`say half ${site.id} again`);
  await until(async () => (await site.tasks()).length === 2);
  await until(async () => (await site.tasks())[0]!.status === 'running');
  await chat.stop();
  expect(await site.ends()).toEqual(['cancelled', 'cancelled']);
  expect((await site.tasks()).map(({ outcome }) => outcome?.reason?.kind)).toEqual(['user', 'superseded']);
});

describe('a client that takes every abort for a stop', () => {
  test('kills the run when the view is left', async () => {
    await using site = lab.open({ naive: true });
    const chat = await half(site);
    await chat.evaluate((page) => page.route(undefined));
    expect(await site.ends()).toEqual(['cancelled']);
  });

  test('kills the run when another chat is shown', async () => {
    await using site = lab.open({ naive: true });
    const chat = await half(site);
    await chat.evaluate((page) => page.route('another'));
    expect(await site.ends()).toEqual(['cancelled']);
  });

  test('kills the run when it is resumed twice', async () => {
    await using site = lab.open({ naive: true });
    const chat = await half(site);
    await chat.page.reload();
    await chat.shows(HALF);
    await chat.evaluate((page) => void page.chat.resumeStream());
    expect(await site.ends()).toEqual(['cancelled']);
  });
});
