import { createAgent, sleep } from '@whoa/core';
import { type Planner, reply } from '@whoa/core/model';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { createMemoryStore, createRunner, type FollowEvent, followTask } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { ORIGIN, type Served, serve } from '../../../../test/server/served.ts';

const WORDS = ['one ', 'two ', 'three'];

/** Writes a word every twenty seconds. */
const slow: Planner = {
  async next(_history, { token, emit }) {
    for (const text of WORDS) {
      emit({ type: 'text', text });
      await sleep(20_000, { clock: token.clock, token });
    }
    return reply(WORDS.join(''));
  },
};

async function setUp(options: Parameters<typeof serve>[0] = {}) {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  const served = serve({ store, world, ...options });
  const agent = createAgent({ name: 'assistant', planner: slow, world });
  const runner = createRunner({ store, agents: { assistant: agent }, world });
  const { id, response } = await runner.start({ tenant: 'acme', agent: 'assistant', input: 'count' });
  const finish = async (): Promise<void> => {
    for (let second = 0; second < 70; second++) await world.clock.advance(1_000);
    await response;
  };
  return { world, store, served, id, finish };
}

function open({ api, tokens }: Served, id: string, headers: Record<string, string> = {}): Promise<Response> {
  const authorization = `Bearer ${tokens.ann}`;
  return api.fetch(new Request(`${ORIGIN}/v1/tasks/${id}/events`, { headers: { authorization, ...headers } }));
}

/** The events that a reader has got so far. */
function read(response: Response) {
  const decoder = new TextDecoder();
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const seen = { text: '', isOver: false };
  const done = (async () => {
    for (;;) {
      const { done: isOver, value } = await reader.read();
      if (isOver) break;
      seen.text += decoder.decode(value, { stream: true });
    }
    seen.isOver = true;
  })();
  return { seen, done, leave: () => reader.cancel() };
}

const parseEvents = (text: string): { id: string; event: string; data: FollowEvent }[] =>
  text
    .split('\n\n')
    .map((block) => /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(block))
    .filter((match) => match !== null)
    .map(([, id = '', event = '', data = '']) => ({ id, event, data: JSON.parse(data) as FollowEvent }));

test('a stream has the journal with its cursors as ids, beats between, and one end', async () => {
  const { world, store, served, id, finish } = await setUp();
  const response = await open(served, id);
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const reading = read(response);
  await finish();
  await reading.done;
  const events = parseEvents(reading.seen.text);
  expect(events.at(-1)).toMatchObject({ id: 'end', event: 'end', data: { task: { status: 'success' } } });
  for (const { id: given, event, data } of events.slice(0, -1)) {
    expect(event).toBe('entry');
    expect(given).toBe((data as { cursor: string }).cursor);
  }
  expect(reading.seen.text.match(/^: beat$/gm)!.length).toBeGreaterThanOrEqual(3);
  const texts = events.flatMap(({ data }) =>
    data.type === 'entry' && data.event.type === 'text' ? [data.event.text] : [],
  );
  expect(texts.join('')).toBe(WORDS.join(''));
  // A later reader gets the rest in the same form.
  const after = read(await open(served, id));
  await after.done;
  const kept: FollowEvent[] = [];
  for await (const one of followTask(store, { tenant: 'acme', id }, { world })) kept.push(one);
  expect(parseEvents(after.seen.text).map(({ data }) => data)).toEqual(JSON.parse(JSON.stringify(kept)));
  expect(world.clock.pending).toBe(0);
});

test('a reader that reconnects with the last id gets the rest, and nothing after the end', async () => {
  const { served, id, finish } = await setUp();
  await finish();
  const whole = read(await open(served, id));
  await whole.done;
  const all = parseEvents(whole.seen.text);
  expect(all.length).toBeGreaterThan(3);
  for (const [index, { id: last }] of all.slice(0, -1).entries()) {
    const rest = read(await open(served, id, { 'last-event-id': last }));
    await rest.done;
    expect(parseEvents(rest.seen.text)).toEqual(all.slice(index + 1));
  }
  expect((await open(served, id, { 'last-event-id': 'end' })).status).toBe(204);
  for (const wrong of ['-1', 'x', '1.5', '1e400']) {
    expect((await open(served, id, { 'last-event-id': wrong })).status, wrong).toBe(400);
  }
  const byQuery = await served.ask('ann', `GET /v1/tasks/${id}/events?after=${all.at(-2)!.id}`);
  expect(parseEvents(byQuery.text)).toEqual(all.slice(-1));
});

test('a reader that leaves is forgotten immediately, and the task continues', async () => {
  const { world, store, served, id, finish } = await setUp({ limits: { maxStreams: 1 } });
  for (const leave of ['by the stream', 'by the signal'] as const) {
    const leaving = new AbortController();
    const request = new Request(`${ORIGIN}/v1/tasks/${id}/events`, {
      headers: { authorization: `Bearer ${served.tokens.ann}` },
      signal: leaving.signal,
    });
    const response = await served.api.fetch(request);
    expect(response.status, leave).toBe(200);
    const reading = read(response);
    await flushMicrotasks();
    expect((await open(served, id)).status).toBe(429);
    if (leave === 'by the stream') await reading.leave();
    else leaving.abort();
    await flushMicrotasks();
  }
  await finish();
  expect(await store.get({ tenant: 'acme', id })).toMatchObject({ status: 'success' });
  expect(world.clock.pending).toBe(0);
});

test('a reader that does not read gets no more beats: nothing piles up', async () => {
  const { world, served, id } = await setUp();
  const response = await open(served, id);
  for (let second = 0; second < 59; second++) await world.clock.advance(1_000);
  const reading = read(response);
  await flushMicrotasks();
  expect(reading.seen.text.match(/^: beat$/gm)?.length ?? 0).toBeLessThanOrEqual(1);
  await reading.leave();
});
