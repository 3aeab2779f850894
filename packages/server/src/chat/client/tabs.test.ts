import type { UIMessage, UIMessageChunk } from 'ai';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type TabEvent, Tabs } from './tabs.ts';

const SAID: UIMessage = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] };
const REPLY: readonly UIMessageChunk[] = [{ type: 'start', messageId: 'm1' }, { type: 'finish' }];

beforeEach(() => Object.assign(globalThis, { location: { href: 'http://app.test/' } }));
afterEach(() => Reflect.deleteProperty(globalThis, 'location'));

/** Two tabs that show the same chat. */
function openTabs() {
  const heard = Promise.withResolvers<TabEvent<UIMessage>>();
  const [one, other] = [new Tabs<UIMessage>(), new Tabs<UIMessage>()];
  const leaves = [one.listen('/api', 'c', () => {}), other.listen('/api', 'c', heard.resolve)];
  return {
    one,
    other,
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
  const release = await tabs.one.say('c', 'r1', { ids: ['u1'], message: SAID });
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

test('a reply that continues a message is passed on whole', async () => {
  using tabs = openTabs();
  const message: UIMessage = { id: 'm1', role: 'assistant', parts: [{ type: 'text', text: 'Before' }] };
  const release = await tabs.one.say('c', 'r2', { ids: ['u1', 'm1'], message });
  expect(await tabs.heard).toMatchObject({ type: 'said', ids: ['u1', 'm1'] });
  const reading = readAll(tabs.other.take('c')!.stream);
  expect(tabs.other.take('c')).toBeUndefined();
  release();
  expect((await reading).map(({ type }) => type)).toEqual(['start', 'text-start', 'text-delta', 'text-end']);
});

test('stops and the parts they close are sent to other tabs', async () => {
  using tabs = openTabs();
  tabs.one.post({ type: 'stopping', chatId: 'c', reason: 'enough' });
  expect(await tabs.heard).toMatchObject({ type: 'stopping', reason: 'enough' });
});
