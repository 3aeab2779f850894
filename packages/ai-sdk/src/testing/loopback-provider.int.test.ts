import { describe, expect, test } from 'vitest';
import { type Script, startLoopbackProvider } from './loopback-provider.ts';

const paths = { chat: '/chat/completions', responses: '/responses', anthropic: '/messages' };
const question = (format: keyof typeof paths) =>
  format === 'responses'
    ? { model: 'm', stream: true, input: [{ role: 'user', content: 'Hi' }] }
    : { model: 'm', stream: true, messages: [{ role: 'user', content: 'Hi' }] };

function post(url: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  return fetch(url, { method: 'POST', body: JSON.stringify(body), ...(signal && { signal }) });
}

function start(script: Script) {
  return startLoopbackProvider({ script });
}

describe.each(['chat', 'responses', 'anthropic'] as const)('%s', (format) => {
  test('the provider streams a response and counts its tokens', async () => {
    await using provider = await start([{ parts: [{ text: ['Hel', 'lo'] }, { call: 'bash', input: { a: 1 } }] }]);
    const response = await post(provider.url + paths[format], question(format));
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const text = await response.text();
    const request = provider.requests[0]!;
    expect(await request.waitForClose()).toBe('server');
    expect(request).toMatchObject({ index: 0, format, words: 'Hello{"a":1}', refusal: undefined });
    expect(request.sent).toMatchObject({ bytes: Buffer.byteLength(text), characters: 12 });
    expect(request.closedAt).toBeGreaterThanOrEqual(request.at);
  });

  test('refuses a broken history in its own shape and does not use up the script', async () => {
    await using provider = await start([{ parts: [{ text: 'Hi' }] }]);
    const broken = format === 'responses' ? { input: [] } : { messages: [] };
    const refused = await post(provider.url + paths[format], broken);
    expect(refused.status).toBe(400);
    const body = (await refused.json()) as { type?: string; error: { type: string; message: string } };
    expect(body.error.type).toBe('invalid_request_error');
    if (format === 'anthropic') expect(body.type).toBe('error');
    expect(body.error.message).toBe(provider.requests[0]!.refusal!.message);
    expect((await post(provider.url + paths[format], question(format))).status).toBe(200);
  });

  test('answers in one piece where no stream is asked for, faults included', async () => {
    const parts = [{ thinking: 'Hm.' }, { text: ['Hel', 'lo'] }, { call: 'bash', id: 'a', input: { b: 1 } }];
    await using provider = await start([{ parts }, { parts: [{ overloaded: true }] }, { parts: [{ cut: true }] }]);
    const url = provider.url + paths[format];
    const body = { ...question(format), stream: false };
    const text = await (await post(url, body)).text();
    for (const words of ['Hello', 'bash', '"a"']) expect(text).toContain(words);
    expect(await provider.requests[0]!.waitForClose()).toBe('server');
    expect(provider.requests[0]!.words).toBe('Hm.Hello{"b":1}');
    expect((await post(url, body)).status).toBe(529);
    await expect(post(url, body)).rejects.toThrow('fetch failed');
  });

  test('sees the client leave, and when', async () => {
    await using provider = await start([{ parts: [{ text: ['Hel', { stall: true }, 'lo'] }] }]);
    const controller = new AbortController();
    const response = await post(provider.url + paths[format], question(format), controller.signal);
    const request = await provider.waitForRequest(0);
    await request.waitForCharacters(3);
    await request.waitForStall();
    expect(provider.openResponses).toBe(1);
    controller.abort();
    await expect(response.text()).rejects.toThrow('aborted');
    expect(await request.waitForClose()).toBe('client');
    expect(request.words).toBe('Hel');
    await provider.waitForIdle();
    expect(provider.openResponses).toBe(0);
  });

  test('a response continues after a stall when its promise settles', async () => {
    const gate = Promise.withResolvers<void>();
    await using provider = await start([{ beforeHeaders: { stall: gate.promise }, parts: [{ text: 'late' }] }]);
    const answer = post(provider.url + paths[format], question(format));
    await (await provider.waitForRequest(0)).waitForStall();
    gate.resolve();
    expect(await (await answer).text()).toContain('late');
  });

  test('cuts, drips and answers with a status, as scripted', async () => {
    await using provider = await start([
      { parts: [{ text: ['Hi', { cut: true }] }] },
      { parts: [{ text: 'slow' }], pace: { intervalMs: 0, bytes: 200 } },
      { status: 529, message: 'Overloaded', headers: { 'retry-after': '3' } },
    ]);
    const url = provider.url + paths[format];
    await expect(post(url, question(format)).then((response) => response.text())).rejects.toThrow(
      /terminated|fetch failed/,
    );
    expect(await provider.requests[0]!.waitForClose()).toBe('server');
    expect(await (await post(url, question(format))).text()).toContain('slow');
    const busy = await post(url, question(format));
    expect([busy.status, busy.headers.get('retry-after')]).toEqual([529, '3']);
  });
});

test('a script that is used up fails', async () => {
  await using provider = await start([]);
  const response = await post(provider.url + paths.chat, question('chat'));
  expect(response.status).toBe(400);
  expect(await response.text()).toContain('used up');
});

test('a script may look at the request', async () => {
  await using provider = await start(({ index }) => ({ parts: [{ text: `number ${index}` }] }));
  await post(provider.url + paths.chat, question('chat'));
  expect(await (await post(provider.url + paths.chat, question('chat'))).text()).toContain('number 1');
});

test('a script that fails reports it', async () => {
  await using provider = await start(() => {
    throw new Error('out of ideas');
  });
  expect(await (await post(provider.url + paths.chat, question('chat'))).text()).toContain('out of ideas');
});

test('an unknown path names the ones there are', async () => {
  await using provider = await start([]);
  const response = await post(`${provider.url}/nowhere`, {});
  expect(response.status).toBe(404);
  expect(await response.text()).toContain('/messages');
});

test('closing the provider ends open responses and leaves no socket', async () => {
  const provider = await start([{ parts: [{ stall: true }] }]);
  const answer = await post(provider.url + paths.chat, question('chat'));
  await provider.close();
  await expect(answer.text()).rejects.toThrow(/terminated/);
  expect(provider.openConnections).toBe(0);
  expect(provider.openResponses).toBe(0);
});
