import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, test } from 'vitest';
import { testAgent } from '../../../test/acp/agent.ts';
import { watchMessages } from '../../../test/acp/editor.ts';
import type { AcpOptions } from './options.ts';
import { connect } from './serve.ts';
import type { V1Method } from './v1/app.ts';

const ORDERS: Record<string, (methods: V1Method[]) => V1Method[]> = {
  'prompt registered before cancel': (methods) => methods,
  'cancel registered before prompt': (methods) => methods.toReversed(),
};

type Raw = { readonly id?: unknown; readonly method?: string; readonly params?: unknown };
const line = (message: Raw): string => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
const opened: { close: () => Promise<unknown> }[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((connection) => connection.close()));
});

/** A client that writes bytes, so that the test decides which messages share a chunk. */
async function openRaw(
  arrange: (methods: V1Method[]) => V1Method[] = (methods) => methods,
  more: Partial<AcpOptions> = {},
) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const connection = connect(testAgent('none', more), { input, output }, arrange);
  opened.push(connection);
  const watch = watchMessages(output);
  const answer = (id: number) => watch.waitFor((message) => message.id === id && message.method === undefined);
  input.write(line({ id: 1, method: 'initialize', params: { protocolVersion: 1, clientCapabilities: {} } }));
  await answer(1);
  input.write(line({ id: 2, method: 'session/new', params: { cwd: '/tmp', mcpServers: [] } }));
  const sessionId = (await answer(2)).result!['sessionId'] as string;
  const prompt = (id: number, text: string): string =>
    line({ id, method: 'session/prompt', params: { sessionId, prompt: [{ type: 'text', text }] } });
  const cancel = line({ method: 'session/cancel', params: { sessionId } });
  const cancelRequest = (id: number): string => line({ method: '$/cancel_request', params: { requestId: id } });
  const close = (id: number): string => line({ id, method: 'session/close', params: { sessionId } });
  const call = (status: string) => watch.waitFor(({ params }) => params?.update?.['status'] === status);
  return { ...watch, input, connection, sessionId, answer, prompt, call, cancel, cancelRequest, close };
}

describe.each(Object.entries(ORDERS))('%s', (_, arrange) => {
  test('a cancel in the same chunk behind the prompt cancels it, 50 times of 50', async () => {
    const { input, answer, prompt, cancel } = await openRaw(arrange);
    for (let id = 10; id < 60; id++) {
      input.write(prompt(id, 'silent') + cancel);
      expect((await answer(id)).result).toMatchObject({ stopReason: 'cancelled' });
    }
  });

  test('a $/cancel_request in the same chunk behind the prompt cancels it, 50 times of 50', async () => {
    const { input, answer, prompt, cancelRequest } = await openRaw(arrange);
    for (let id = 10; id < 60; id++) {
      input.write(prompt(id, 'silent') + cancelRequest(id));
      expect((await answer(id)).result).toMatchObject({ stopReason: 'cancelled' });
    }
  });

  test('a cancel in the same chunk before the prompt leaves it alone, 50 times of 50', async () => {
    const { input, answer, prompt, cancel } = await openRaw(arrange);
    for (let id = 10; id < 60; id++) {
      input.write(cancel + prompt(id, 'hello'));
      expect((await answer(id)).result).toMatchObject({ stopReason: 'end_turn' });
    }
  });

  test('a close in the same chunk behind the prompt cancels it, and answers after it', async () => {
    const { input, answer, prompt, close, messages } = await openRaw(arrange);
    input.write(prompt(10, 'silent') + close(11));
    expect((await answer(10)).result).toMatchObject({ stopReason: 'cancelled' });
    await answer(11);
    expect(messages.findIndex(({ id }) => id === 10)).toBeLessThan(messages.findIndex(({ id }) => id === 11));
  });
});

test('a cancel without a prompt, twice, or for an unknown session does nothing, now or later', async () => {
  const { input, answer, prompt, cancel } = await openRaw();
  input.write(cancel + cancel + line({ method: 'session/cancel', params: { sessionId: 'nobody' } }));
  input.write(line({ method: 'session/cancel', params: {} }));
  input.write(prompt(10, 'hello'));
  expect((await answer(10)).result).toMatchObject({ stopReason: 'end_turn' });
});

test('a cancel that comes twice is one cancel', async () => {
  const { input, answer, prompt, cancel, cancelRequest, waitFor, messages } = await openRaw();
  input.write(prompt(10, 'talk'));
  await waitFor((message) => JSON.stringify(message).includes('three'));
  input.write(cancel + cancelRequest(10) + cancel);
  expect((await answer(10)).result).toMatchObject({ stopReason: 'cancelled' });
  input.write(cancel + prompt(11, 'hello'));
  expect((await answer(11)).result).toMatchObject({ stopReason: 'end_turn' });
  expect(messages.filter(({ id, method }) => id === 10 && method === undefined)).toHaveLength(1);
});

test('the next prompt waits until the cancelled one is settled, and sees the partial answer', async () => {
  const { input, answer, prompt, cancel, waitFor, messages } = await openRaw();
  input.write(prompt(10, 'finish'));
  await waitFor(({ params }) => params?.update?.['status'] === 'in_progress');
  input.write(cancel + prompt(11, 'hello'));
  expect((await answer(11)).result).toMatchObject({ stopReason: 'end_turn' });
  const first = messages.findIndex(({ id, method }) => id === 10 && method === undefined);
  expect(messages[first]?.result).toMatchObject({ stopReason: 'cancelled' });
  const words = messages.map((message) => JSON.stringify(message));
  expect(words.findIndex((text) => text.includes('You said: hello') || text.includes('"You '))).toBeGreaterThan(first);
  // The payment must not be interrupted: it finished and is reported as finished.
  expect(messages.slice(0, first).some(({ params }) => params?.update?.['status'] === 'completed')).toBe(true);
});

test('a cancel ends the prompts that wait, too', async () => {
  const { input, answer, prompt, cancel } = await openRaw();
  input.write(prompt(10, 'talk') + prompt(11, 'hello') + prompt(12, 'hello') + cancel);
  for (const id of [10, 11, 12]) expect((await answer(id)).result).toMatchObject({ stopReason: 'cancelled' });
});

describe('a newer prompt', () => {
  const asIs = (methods: V1Method[]): V1Method[] => methods;

  test('replaces the one under way and those that wait, if so wished', async () => {
    const { input, answer, prompt, waitFor } = await openRaw(asIs, { policy: 'replace' });
    input.write(prompt(10, 'talk'));
    await waitFor((message) => JSON.stringify(message).includes('three'));
    input.write(prompt(11, 'hello') + prompt(12, 'hello'));
    const reason = { kind: 'superseded', via: 'session/prompt' };
    expect((await answer(10)).result).toMatchObject({
      stopReason: 'cancelled',
      _meta: { 'whoa/stopReport': { reason } },
    });
    expect((await answer(11)).result).toMatchObject({ stopReason: 'cancelled' });
    expect((await answer(12)).result).toMatchObject({ stopReason: 'end_turn' });
  });

  test('a newer prompt that replaces lets a running call finish, within the ladder', async () => {
    const { input, answer, prompt, call } = await openRaw(asIs, {
      policy: 'replace',
      stopMode: { drainMs: 50, abortMs: 50 },
    });
    input.write(prompt(10, 'deaf'));
    await call('in_progress');
    input.write(prompt(11, 'hello'));
    const { result } = await answer(10);
    const { levels } = (result!['_meta'] as Record<string, { levels: { level: string }[] }>)['whoa/stopReport']!;
    expect(levels.map(({ level }) => level)).toEqual(['drain', 'abort', 'kill']);
    expect((await answer(11)).result).toMatchObject({ stopReason: 'end_turn' });
  });

  test('a newer prompt is rejected while one is running, if so configured, and leaves it alone', async () => {
    const { input, answer, prompt, cancel, messages } = await openRaw(asIs, { policy: 'reject' });
    input.write(prompt(10, 'talk') + prompt(11, 'hello') + prompt(12, 'hello'));
    for (const id of [11, 12]) expect((await answer(id)).error?.message).toContain('a prompt is running');
    expect(messages.some(({ id, method }) => id === 10 && method === undefined)).toBe(false);
    input.write(cancel);
    expect((await answer(10)).result).toMatchObject({ stopReason: 'cancelled' });
    input.write(prompt(13, 'hello'));
    expect((await answer(13)).result).toMatchObject({ stopReason: 'end_turn' });
  });
});

test('a $/cancel_request for one that waits leaves the one that runs alone', async () => {
  const { input, answer, prompt, cancelRequest, cancel, messages } = await openRaw();
  input.write(prompt(10, 'talk') + prompt(11, 'hello') + cancelRequest(11));
  expect((await answer(11)).result).toMatchObject({ stopReason: 'cancelled' });
  expect(messages.some(({ id, result }) => id === 10 && result !== undefined)).toBe(false);
  input.write(cancel);
  expect((await answer(10)).result).toMatchObject({ stopReason: 'cancelled' });
});

test('a prompt that is rejected leaves nothing behind that the next one would wait for', async () => {
  const { input, answer, prompt, sessionId } = await openRaw();
  input.write(line({ id: 10, method: 'session/prompt', params: { sessionId, prompt: 'no list' } }));
  expect((await answer(10)).error).toMatchObject({ code: -32602 });
  input.write(prompt(11, 'hello'));
  expect((await answer(11)).result).toMatchObject({ stopReason: 'end_turn' });
});

test('two prompts with one id are both answered, and the session continues', async () => {
  const { input, answer, prompt, cancel, messages, waitFor } = await openRaw();
  input.write(prompt(10, 'talk') + prompt(10, 'hello') + cancel);
  await waitFor(() => messages.filter(({ id, method }) => id === 10 && method === undefined).length === 2);
  input.write(prompt(11, 'hello'));
  expect((await answer(11)).result).toMatchObject({ stopReason: 'end_turn' });
});

test('a prompt with an id that no answer can carry back is run all the same', async () => {
  const { input, waitFor, sessionId } = await openRaw();
  const params = { sessionId, prompt: [{ type: 'text', text: 'hello' }] };
  input.write(
    line({ id: null, method: 'session/prompt', params }) + line({ id: 1.5, method: 'session/prompt', params }),
  );
  for (const id of [null, 1.5]) {
    const answer = await waitFor((message) => message.id === id);
    expect(answer.result).toMatchObject({ stopReason: 'end_turn' });
  }
});

test('a call that ignores its signal is abandoned when the ladder ends, and the prompt gets its response', async () => {
  const { input, answer, prompt, cancel, waitFor, messages } = await openRaw();
  input.write(prompt(10, 'deaf'));
  await waitFor(({ params }) => params?.update?.['status'] === 'in_progress');
  input.write(cancel);
  const { result } = await answer(10);
  expect(result).toMatchObject({
    stopReason: 'cancelled',
    _meta: { 'whoa/stopReport': { isClean: false, calls: [{ state: 'unknown' }] } },
  });
  const end = messages.find(({ params }) => params?.update?.['status'] === 'failed');
  expect(end?.params?.update).toMatchObject({ rawOutput: { cancelled: true, state: 'unknown', reason: 'user' } });
});

test('everything stops when the client disconnects, and the connection is closed', async () => {
  const { input, prompt, waitFor, connection } = await openRaw();
  input.write(prompt(10, 'talk'));
  await waitFor((message) => JSON.stringify(message).includes('three'));
  input.end();
  expect(await connection.closed).toEqual({ by: 'client' });
});

test('a close from our side answers the prompt first', async () => {
  const { input, prompt, waitFor, connection, answer } = await openRaw();
  input.write(prompt(10, 'talk'));
  await waitFor((message) => JSON.stringify(message).includes('three'));
  const closed = connection.close({ kind: 'shutdown', via: 'SIGTERM' });
  expect((await answer(10)).result).toMatchObject({
    stopReason: 'cancelled',
    _meta: { 'whoa/stopReport': { reason: { kind: 'shutdown', via: 'SIGTERM' } } },
  });
  expect(await closed).toEqual({ by: 'agent' });
});

test('prompts in one chunk are answered in order, and only those that find no room are rejected', async () => {
  const { input, answer, prompt, messages } = await openRaw();
  const ids = Array.from({ length: 80 }, (_, i) => 100 + i);
  input.write(ids.map((id) => prompt(id, `number ${id}`)).join(''));
  const answers = await Promise.all(ids.map(answer));
  const taken = answers.filter(({ error }) => error === undefined);
  expect(taken.map(({ id }) => id)).toEqual(ids.slice(0, 65));
  expect(answers.at(-1)!.error?.message).toContain('64 prompts are already waiting');
  const inOrder = messages.flatMap(({ id, result }) => (result?.stopReason === 'end_turn' ? [id] : []));
  expect(inOrder).toEqual(ids.slice(0, 65));
});

test('an editor learns that a stop waits for a call that must not be interrupted', async () => {
  const { input, answer, prompt, call, cancel, messages } = await openRaw();
  input.write(prompt(10, 'finish'));
  await call('in_progress');
  input.write(cancel);
  expect((await answer(10)).result).toMatchObject({ stopReason: 'cancelled' });
  const waiting = messages.find(({ params }) =>
    JSON.stringify(params?.update?.['_meta'] ?? '').includes('whoa/waiting'),
  );
  expect(waiting?.params?.update).toMatchObject({
    sessionUpdate: 'tool_call_update',
    content: [{ content: { text: expect.stringMatching(/must not be interrupted.*1 s at most/) as string } }],
    _meta: { 'whoa/waiting': { until: expect.any(Number) as number } },
  });
});
