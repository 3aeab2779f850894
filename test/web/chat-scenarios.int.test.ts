// What people do with a chat, in a real browser with the real `useChat`. Only a stop may stop a run.
import { createMemoryStore, type TaskStore } from '@whoa/tasks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../promises/scene.ts';
import { ALL, HALF, type Lab, openLab, type Room } from './browser.ts';

let lab: Lab;
let store: TaskStore;
beforeAll(async () => {
  lab = await openLab();
  store = createMemoryStore();
});
afterAll(async () => {
  await lab[Symbol.asyncDispose]();
  await store[Symbol.asyncDispose]();
});

/** A chat whose model has said half of its reply. */
async function half(room: Room) {
  const chat = await room.page();
  await chat.send(`say half ${room.id}`);
  await chat.shows(HALF);
  return chat;
}

describe.each([
  ['over HTTP', {}],
  ['over HTTP, in StrictMode', { strict: true }],
  ['over WebSocket', { socket: true }],
  ['over WebSocket, in StrictMode', { socket: true, strict: true }],
])('%s', (_, mode) => {
  const open = () => lab.open(store, mode);

  test('stop: one request, the run is cancelled, what was said stays', async () => {
    await using room = await open();
    const chat = await half(room);
    await chat.stop();
    expect(await room.ends()).toEqual(['cancelled']);
    await chat.status('ready');
    expect(room.stops()).toBe(1);
    expect(await chat.replies()).toEqual([HALF]);
    expect((await room.tasks())[0]!.outcome).toMatchObject({
      reason: { kind: 'user', by: 'ada' },
      answer: HALF,
    });
  });

  test('the page that stops it learns what became of it', async () => {
    await using room = await open();
    const chat = await half(room);
    await chat.stop();
    await until(async () => (await chat.finishes()).length > 0);
    expect(await chat.finishes()).toMatchObject([{ isAbort: true, isError: false }]);
    expect(await chat.page.textContent('footer')).toContain('"kind":"user"');
  });

  test('the button of the page stops too', async () => {
    await using room = await open();
    const chat = await half(room);
    await chat.page.click('button');
    expect(await room.ends()).toEqual(['cancelled']);
    expect(room.stops()).toBe(1);
  });

  test('reload: the reply goes on without a gap or a double', async () => {
    await using room = await open();
    const chat = await half(room);
    await chat.page.reload();
    await chat.shows(HALF);
    room.release();
    await chat.shows(ALL);
    await chat.status('ready');
    expect([room.stops(), await room.ends(), await chat.replies()]).toEqual([0, ['success'], [ALL]]);
  });

  test('leaving the view and coming back stops nothing', async () => {
    await using room = await open();
    const chat = await half(room);
    await chat.evaluate((page) => page.route(undefined));
    await chat.page.waitForSelector('#elsewhere');
    await chat.page.evaluate((id) => (window as unknown as { route(to: string): Promise<void> }).route(id), room.id);
    await chat.shows(HALF);
    room.release();
    await chat.shows(ALL);
    expect([room.stops(), await room.ends()]).toEqual([0, ['success']]);
  });

  test('another chat in the same view stops nothing', async () => {
    await using room = await open();
    const chat = await half(room);
    await chat.evaluate((page) => page.route('another'));
    await chat.page.waitForFunction(() => document.querySelectorAll('p').length === 0);
    room.release();
    expect([room.stops(), await room.ends()]).toEqual([0, ['success']]);
    await chat.page.evaluate((id) => (window as unknown as { route(to: string): Promise<void> }).route(id), room.id);
    await chat.shows(ALL);
  });

  test('another site and back', async () => {
    await using room = await open();
    const chat = await half(room);
    await chat.page.goto(`${room.servers[0]!.url}/elsewhere`);
    await chat.page.goBack();
    await chat.shows(HALF);
    room.release();
    await chat.shows(ALL);
    expect([room.stops(), await room.ends()]).toEqual([0, ['success']]);
  });

  test('a stop after a reload stops the same run', async () => {
    await using room = await open();
    const chat = await half(room);
    await chat.page.reload();
    await chat.shows(HALF);
    await chat.stop();
    expect(await room.ends()).toEqual(['cancelled']);
    await chat.status('ready');
    expect([room.stops(), await chat.replies()]).toEqual([1, [HALF]]);
  });

  test('a second tab, on another server, stops it; the first one sees that', async () => {
    await using room = await open();
    const first = await half(room);
    const second = await room.page(1);
    await second.shows(HALF);
    await second.stop();
    expect(await room.ends()).toEqual(['cancelled']);
    await first.status('ready');
    await until(async () => (await first.finishes()).length > 0);
    expect(await first.finishes()).toMatchObject([{ isAbort: true, isError: false }]);
    expect([await first.replies(), room.stops()]).toEqual([[HALF], 1]);
  });

  test('resuming twice stops nothing', async () => {
    await using room = await open();
    const chat = await half(room);
    await chat.page.reload();
    await chat.shows(HALF);
    await chat.evaluate((page) => void page.chat.resumeStream());
    room.release();
    await chat.shows(ALL);
    expect([room.stops(), await room.ends(), await chat.replies()]).toEqual([0, ['success'], [ALL]]);
  });
});

test('a reply that ends while the page is being opened is not missed', async () => {
  await using room = await lab.open(store);
  const chat = await half(room);
  // The page has its messages, and asks for the reply when it has ended.
  await chat.page.route('**/stream', async (route) => {
    room.release();
    await room.ends();
    await route.continue();
  });
  await chat.page.reload();
  await chat.shows(ALL);
  expect([await chat.replies(), room.stops()]).toEqual([[ALL], 0]);
});

test('closing the tab stops nothing', async () => {
  await using room = await lab.open(store);
  const chat = await half(room);
  await chat.page.close();
  room.release();
  expect([room.stops(), await room.ends()]).toEqual([0, ['success']]);
  const again = await room.page();
  await again.shows(ALL);
});

test('a stop arrives though the page is left in the same moment', async () => {
  await using room = await lab.open(store);
  const chat = await half(room);
  await chat.evaluate((page) => {
    page.chat.stop().catch(() => {});
    location.href = '/elsewhere';
  });
  await chat.page.waitForURL('**/elsewhere');
  expect(await room.ends()).toEqual(['cancelled']);
});

test('a lost connection stops nothing; the reply can be resumed, or stopped', async () => {
  await using room = await lab.open(store);
  const chat = await half(room);
  room.cut();
  await chat.status('error');
  expect(await chat.finishes()).toMatchObject([{ isDisconnect: true }]);
  await chat.evaluate((page) => void page.chat.resumeStream());
  await chat.status('streaming');
  await chat.stop();
  expect([await room.ends(), room.stops()]).toEqual([['cancelled'], 1]);
});

test('a stop while the connection is lost stops the run', async () => {
  await using room = await lab.open(store);
  const chat = await half(room);
  room.cut();
  await chat.status('error');
  await chat.stop();
  expect(await room.ends()).toEqual(['cancelled']);
});

test('a stop before the first byte of the answer counts', async () => {
  await using room = await lab.open(store);
  const chat = await room.page();
  const letGo = room.hold('send');
  await chat.send(`say half ${room.id}`);
  await until(() => room.requests.includes('send'));
  await chat.stop();
  expect(await room.ends()).toEqual(['cancelled']);
  letGo();
  await chat.status('ready');
  expect(room.stops()).toBe(1);
});

test.each([0, 1, 2, 3, 4, 6, 10])('a stop %i microtasks after the message leaves nothing running', async (ticks) => {
  await using room = await lab.open(store);
  const chat = await room.page();
  await chat.page.evaluate(
    async ({ text, ticks: count }) => {
      const { chat: own } = window as unknown as { chat: { sendMessage(m: object): unknown; stop(): Promise<void> } };
      void own.sendMessage({ text });
      for (let tick = 0; tick < count; tick++) await Promise.resolve();
      await own.stop();
    },
    { text: `say half ${room.id}`, ticks },
  );
  await chat.status('ready');
  // Nothing was sent, or it was stopped.
  expect((await room.ends()).filter((status) => status !== 'cancelled')).toEqual([]);
});

test('the next message at once: the stop comes first, and the next run is whole', async () => {
  await using room = await lab.open(store);
  const chat = await half(room);
  const letGo = room.hold('stop');
  const sent = chat.page.evaluate((text) => {
    const { chat: own } = window as unknown as { chat: { sendMessage(m: object): Promise<void>; stop(): unknown } };
    void own.stop();
    return own.sendMessage({ text });
  }, `say all ${room.id}`);
  await until(() => room.stops() === 1);
  letGo();
  await sent;
  await chat.shows(ALL);
  expect(room.requests).toEqual(['send', 'stop', 'send']);
  expect(await room.ends()).toEqual(['cancelled', 'success']);
});

test('pressed three times, it is one request', async () => {
  await using room = await lab.open(store);
  const chat = await half(room);
  await chat.evaluate((page) => Promise.all([page.chat.stop(), page.chat.stop()]));
  await chat.stop();
  expect([await room.ends(), room.stops()]).toEqual([['cancelled'], 1]);
});

test('a stop that races the end never harms the next run', async () => {
  await using room = await lab.open(store);
  const chat = await half(room);
  await chat.evaluate((page) => {
    (page as unknown as { stopSoon: Promise<void> }).stopSoon = new Promise((resolve) => setTimeout(resolve)).then(() =>
      page.chat.stop(),
    );
  });
  room.release();
  await chat.evaluate((page) => (page as unknown as { stopSoon: Promise<void> }).stopSoon);
  await chat.status('ready');
  await chat.send(`say all ${room.id}`);
  await chat.shows(ALL);
  expect((await room.ends()).at(-1)).toBe('success');
});

test('a second message replaces the first; a stop then stops the second', async () => {
  await using room = await lab.open(store);
  const chat = await half(room);
  await chat.send(`say half ${room.id} again`);
  await until(async () => (await room.tasks()).length === 2);
  await until(async () => (await room.tasks())[0]!.status === 'running');
  await chat.stop();
  expect(await room.ends()).toEqual(['cancelled', 'cancelled']);
  expect((await room.tasks()).map(({ outcome }) => outcome?.reason?.kind)).toEqual(['user', 'superseded']);
});

describe('a client that takes every abort for a stop', () => {
  test('kills the run when the view is left', async () => {
    await using room = await lab.open(store, { naive: true });
    const chat = await half(room);
    await chat.evaluate((page) => page.route(undefined));
    expect(await room.ends()).toEqual(['cancelled']);
  });

  test('kills the run when another chat is shown', async () => {
    await using room = await lab.open(store, { naive: true });
    const chat = await half(room);
    await chat.evaluate((page) => page.route('another'));
    expect(await room.ends()).toEqual(['cancelled']);
  });

  test('kills the run when it is resumed twice', async () => {
    await using room = await lab.open(store, { naive: true });
    const chat = await half(room);
    await chat.page.reload();
    await chat.shows(HALF);
    await chat.evaluate((page) => void page.chat.resumeStream());
    expect(await room.ends()).toEqual(['cancelled']);
  });
});
