import type { UIMessage, UIMessageChunk } from 'ai';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type TabEvent, Tabs } from './tabs.ts';

const SAID: UIMessage = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] };
const REPLY: readonly UIMessageChunk[] = [{ type: 'start', messageId: 'm1' }, { type: 'finish' }];

beforeEach(() => Object.assign(globalThis, { location: { href: 'http://app.test/' } }));
afterEach(() => Reflect.deleteProperty(globalThis, 'location'));

/** Two tabs that show the same chat. */
function openTabs(user = 'ada') {
  const heard = Promise.withResolvers<TabEvent<UIMessage>>();
  const [one, second] = [new Tabs<UIMessage>(() => 'ada'), new Tabs<UIMessage>(() => user)];
  const leaves = [one.listen('/api', 'c', () => {}), second.listen('/api', 'c', heard.resolve)];
  return {
    one,
    other: second,
    heard: heard.promise,
    [Symbol.dispose]: () => {
      for (const leave of leaves) leave();
    },
  };
}

async function readAll(stream: ReadableStream<UIMessageChunk>): Promise<UIMessageChunk[]> {
  const chunks: UIMessageChunk[] = [];
  for await (const chunk of stream as unknown as AsyncIterable<UIMessageChunk>) chunks.push(chunk);
  return chunks;
}

test('a reply that ended before a tab came to read it is still passed on, once', async () => {
  using tabs = openTabs();
  const release = await tabs.one.say('c', 'r1', SAID);
  for (const chunk of REPLY) tabs.one.post({ type: 'chunk', chatId: 'c', runId: 'r1', chunk });
  await tabs.heard;
  release();
  await navigator.locks.request('whoa-reply-r1', () => {});
  const passed = tabs.other.take('c');
  expect(passed?.message).toEqual(SAID);
  expect(await readAll(passed!.stream)).toEqual(REPLY);
  // Chunks after the end are ignored.
  tabs.one.post({ type: 'chunk', chatId: 'c', runId: 'r1', chunk: { type: 'finish' } });
  expect(tabs.other.take('d')).toBeUndefined();
});

test('stops and the parts they close are sent to other tabs', async () => {
  using tabs = openTabs();
  tabs.one.post({ type: 'stopping', chatId: 'c', reason: 'enough' });
  expect(await tabs.heard).toMatchObject({ type: 'stopping', reason: 'enough' });
});

test('what another user does in a chat of the same name is ignored', async () => {
  using tabs = openTabs('bob');
  const release = await tabs.one.say('c', 'r3', SAID);
  release();
  const heard = new BroadcastChannel('whoa-chat http://app.test/api');
  const isHeard = new Promise((resolve) => (heard.onmessage = resolve));
  tabs.one.post({ type: 'stopping', chatId: 'c' });
  await isHeard;
  heard.close();
  expect(tabs.other.take('c')).toBeUndefined();
});

test('a tab is told what the server has told another', async () => {
  using tabs = openTabs();
  const state = { version: '1', questions: [] };
  tabs.one.post({ type: 'state', chatId: 'c', state });
  expect(await tabs.heard).toMatchObject({ type: 'state', state });
});
