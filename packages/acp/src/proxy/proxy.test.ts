import { expect, test } from 'vitest';
import {
  cancel,
  chunk,
  initialize,
  type Line,
  openProxy,
  openSession,
  type ProxyHarness,
  prompt,
} from '../../../../test/acp/proxied.ts';

const CANCELLED = { stopReason: 'cancelled' };

/** What matters of a message. */
function brief({ id, method, params, result, error }: Line): unknown {
  if (method === 'session/update') {
    const { sessionUpdate, status, toolCallId, state, stopReason } = (params?.update ?? {}) as Record<string, string>;
    return [sessionUpdate, toolCallId, status ?? state, stopReason].filter((part) => part !== undefined).join(' ');
  }
  if (method !== undefined) return id === undefined ? method : `${method} ${String(id).slice(0, 5)}`;
  return error === undefined ? { [String(id)]: result } : { [String(id)]: error.code };
}

const editorReceived = (harness: ProxyHarness): unknown[] => harness.received().map(brief);
const agentReceived = (harness: ProxyHarness): unknown[] => harness.agent.received().map(brief);
const permission = (id: number): object => ({
  id,
  method: 'session/request_permission',
  params: { sessionId: 's', options: [{ optionId: 'yes', kind: 'allow_once' }] },
});
const YES = { outcome: { outcome: 'selected', optionId: 'yes' } };

test('frames that do not concern a stop pass byte for byte, in both directions', async () => {
  const harness = await openProxy();
  const toAgent = [
    '{"id": 1,"jsonrpc":"2.0", "method":"initialize","params":{"protocolVersion":1,"_meta":{"ä":"\\u00e4 💥"}}}',
    '{"jsonrpc":"2.0","id":"x","method":"_anyone/knows","params":[1,2]}',
    '{"jsonrpc":"2.0","method":"_note"}\r',
  ];
  await harness.send(...toAgent);
  expect(harness.agent.receivedLines()).toEqual(toAgent);
  const toEditor = [
    '{"result":{"protocolVersion":1 , "x":1e3},"id":1,"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"no","data":{"__proto__":1}}}',
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"nobody knows","update":{"sessionUpdate":"new"}}}',
    '{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/a"}}',
  ];
  await harness.agent.send(...toEditor);
  expect(harness.receivedLines()).toEqual(toEditor);
  const answer = '{"jsonrpc":"2.0", "id":7,"result":{"content":""}}';
  await harness.send(answer);
  expect(harness.agent.receivedLines()).toEqual([answer]);
});

test('a message without a session passes unchanged, even if the editor has one whose name is empty', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2, ''), cancel(''));
  await harness.clock.advance(1_000);
  harness.received();
  const line = '{"jsonrpc":"2.0","id":7,"method":"fs/write_text_file","params":{"path":"/a"}}';
  await harness.agent.send(line);
  expect(harness.receivedLines()).toEqual([line]);
});

test('a prompt that is not cancelled passes unchanged', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2));
  await harness.agent.update('s', chunk('hi'));
  await harness.agent.update('s', { sessionUpdate: 'tool_call', toolCallId: 'c', status: 'in_progress' });
  await harness.agent.send({ id: 2, result: { stopReason: 'end_turn', usage: 1 } });
  await harness.agent.update('s', chunk('afterwards'));
  expect(editorReceived(harness)).toEqual([
    'agent_message_chunk',
    'tool_call c in_progress',
    { 2: { stopReason: 'end_turn', usage: 1 } },
    'agent_message_chunk',
  ]);
  expect(harness.events).toEqual([]);
  expect(harness.agent.endings).toEqual([]);
});

test('an agent that stops is only watched; its processes are ended, then its answer passes', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2), cancel());
  expect(agentReceived(harness)).toEqual(['session/prompt 2', 'session/cancel']);
  const answer = '{"jsonrpc":"2.0","id":2, "result":{"stopReason":"cancelled","_meta":{}}}';
  await harness.agent.send(answer);
  expect(harness.receivedLines()).toEqual([answer]);
  expect(harness.agent.endings).toHaveLength(1);
  expect(harness.events).toMatchObject([
    { type: 'stop', agent: 'cancelled', by: 'session/cancel', processes: { ended: 2 } },
  ]);
});

test('an agent that does not answer is asked again, then answered for, with everything closed before', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2));
  await harness.agent.update('s', { sessionUpdate: 'tool_call', toolCallId: 'a', status: 'pending' });
  await harness.agent.update('s', { sessionUpdate: 'tool_call', toolCallId: 'b' });
  await harness.agent.update('s', { sessionUpdate: 'tool_call_update', toolCallId: 'b', status: 'completed' });
  await harness.agent.send({ id: 'q1', method: 'terminal/create', params: { sessionId: 's' } });
  await harness.send({ id: 'q1', result: { terminalId: 't' } });
  await harness.agent.send({ id: 'q2', method: 'terminal/wait_for_exit', params: { sessionId: 's', terminalId: 't' } });
  await harness.agent.send(permission(50));
  harness.received();
  harness.agent.received();
  await harness.send(cancel());
  expect(editorReceived(harness)).toEqual(['$/cancel_request']);
  expect(agentReceived(harness)).toEqual(['session/cancel', { 50: { outcome: { outcome: 'cancelled' } } }]);
  await harness.clock.advance(500);
  expect(agentReceived(harness)).toEqual(['session/cancel', '$/cancel_request']);
  expect(harness.agent.endings).toHaveLength(1);
  expect(editorReceived(harness)).toEqual([]);
  await harness.clock.advance(500);
  expect(editorReceived(harness)).toEqual([
    '$/cancel_request',
    'terminal/release whoa-',
    'tool_call_update a failed',
    { 2: CANCELLED },
  ]);
  expect(agentReceived(harness)).toEqual([{ q2: -32800 }]);
  expect(harness.events).toMatchObject([{ agent: 'answered-for', closedCalls: 1, closedQuestions: 2, ms: 1_000 }]);
});

test('updates of a prompt that the proxy has answered are dropped until the agent has answered and another prompt runs', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2));
  await harness.agent.update('s', { sessionUpdate: 'tool_call', toolCallId: 'a', status: 'pending' });
  await harness.send(cancel());
  await harness.clock.advance(1_000);
  harness.received();
  harness.agent.received();
  await harness.agent.update('s', chunk('late'));
  await harness.agent.update('s', { sessionUpdate: 'usage_update', used: 1, size: 2 });
  await harness.agent.send(permission(60), { id: 61, method: 'fs/write_text_file', params: { sessionId: 's' } });
  expect(agentReceived(harness)).toEqual([{ 60: { outcome: { outcome: 'cancelled' } } }, { 61: -32800 }]);
  await harness.agent.send(
    { id: 2, result: { stopReason: 'end_turn' } },
    { id: 2, result: { stopReason: 'end_turn' } },
  );
  await harness.agent.update('s', chunk('later'));
  expect(editorReceived(harness)).toEqual(['usage_update']);
  await harness.send(prompt(3));
  expect(agentReceived(harness)).toEqual(['session/prompt 3']);
  await harness.agent.update('s', { sessionUpdate: 'tool_call_update', toolCallId: 'a', status: 'completed' });
  await harness.agent.update('s', chunk('new'));
  await harness.agent.send({ id: 3, result: { stopReason: 'end_turn' } });
  expect(editorReceived(harness)).toEqual(['agent_message_chunk', { 3: { stopReason: 'end_turn' } }]);
  expect(harness.agents).toHaveLength(1);
});

test('a cancel before a prompt, again, and after its end does not reach the agent', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(cancel(), cancel('nobody'), prompt(2));
  expect(agentReceived(harness)).toEqual(['session/prompt 2']);
  await harness.agent.send({ id: 2, result: { stopReason: 'end_turn' } });
  await harness.send(cancel());
  expect(agentReceived(harness)).toEqual([]);
  await harness.send(prompt(3), cancel(), cancel());
  expect(agentReceived(harness)).toEqual(['session/prompt 3', 'session/cancel']);
  await harness.agent.send({ id: 3, result: CANCELLED });
  await harness.send(cancel(), { method: '$/cancel_request', params: { requestId: 3 } });
  expect(agentReceived(harness)).toEqual([]);
  expect(editorReceived(harness)).toEqual([{ 2: { stopReason: 'end_turn' } }, { 3: CANCELLED }]);
});

test.each([
  [
    { result: { stopReason: 'end_turn', usage: { n: 1 } } },
    { stopReason: 'cancelled', usage: { n: 1 } },
    'other-answer',
  ],
  [{ error: { code: -32603, message: 'aborted' } }, CANCELLED, 'error'],
  [{ result: null }, CANCELLED, 'other-answer'],
  [{ result: 'nonsense' }, CANCELLED, 'other-answer'],
])('a cancelled prompt that is answered with %j ends as cancelled', async (answer, result, agent) => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2), cancel());
  await harness.agent.send({ id: 2, ...answer });
  expect(editorReceived(harness)).toEqual([{ 2: result }]);
  expect(harness.events).toMatchObject([{ agent }]);
});

test('a request is cancelled like a session, and one that is not a prompt is the agent’s own affair', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2), { id: 9, method: 'session/list', params: {} });
  const line = '{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":9}}';
  await harness.send(line, { method: '$/cancel_request', params: { requestId: 2 } }, cancel());
  expect(harness.agent.receivedLines().slice(2)).toEqual([line, expect.stringContaining('"requestId":2')]);
  await harness.agent.send({ id: 2, error: { code: -32800, message: 'cancelled' } });
  expect(editorReceived(harness)).toEqual([{ 2: -32800 }]);
});

test('a yes after the cancel is dropped, and only the editor can say yes', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2));
  await harness.agent.send(permission(50));
  await harness.send({ id: 50, result: YES }, { id: 50, result: YES }, { id: 77, result: YES });
  expect(agentReceived(harness)).toEqual(['session/prompt 2', { 50: YES }]);
  await harness.agent.send(permission(51));
  await harness.send(cancel());
  await harness.send({ id: 51, result: YES });
  await harness.agent.send(permission(52), { method: '$/cancel_request', params: { requestId: 51 } });
  const outcome = { outcome: { outcome: 'cancelled' } };
  expect(agentReceived(harness)).toEqual(['session/cancel', { 51: outcome }, { 52: outcome }]);
  expect(editorReceived(harness)).toEqual([
    'session/request_permission 50',
    'session/request_permission 51',
    '$/cancel_request',
  ]);
});

test('a prompt that is sent while the one before is being stopped waits for its end', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2), cancel(), prompt(3));
  expect(agentReceived(harness)).toEqual(['session/prompt 2', 'session/cancel']);
  await harness.agent.send({ id: 2, result: CANCELLED });
  expect(agentReceived(harness)).toEqual(['session/prompt 3']);
  await harness.agent.send({ id: 3, result: { stopReason: 'end_turn' } });
  expect(editorReceived(harness)).toEqual([{ 2: CANCELLED }, { 3: { stopReason: 'end_turn' } }]);
});

test('the editor gets its answer when the known processes are dead, and the report follows with the proof', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2), cancel());
  const { promise, resolve } = Promise.withResolvers<void>();
  harness.agent.proof = promise;
  await harness.agent.send({ id: 2, result: CANCELLED });
  expect(editorReceived(harness)).toEqual([{ 2: CANCELLED }]);
  expect(harness.events).toEqual([]);
  resolve();
  await harness.clock.advance(1);
  expect(harness.events).toMatchObject([{ type: 'stop', processes: { ended: 2 } }]);
  await harness.send(prompt(3));
  await harness.agent.send({ id: 3, result: { stopReason: 'end_turn' } });
  expect(editorReceived(harness)).toEqual([{ 3: { stopReason: 'end_turn' } }]);
});

test('a prompt that waits is cancelled without the agent', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2), cancel(), prompt(3), prompt(4), cancel());
  await harness.send(prompt(5), { method: '$/cancel_request', params: { requestId: 5 } });
  expect(editorReceived(harness)).toEqual([{ 3: CANCELLED }, { 4: CANCELLED }, { 5: CANCELLED }]);
  await harness.agent.send({ id: 2, result: CANCELLED });
  expect(agentReceived(harness)).toEqual(['session/prompt 2', 'session/cancel']);
});

test('a stop does not touch another session, nor processes that may be of its prompt', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await openSession(harness, 't');
  await harness.send(prompt(2), prompt(3, 't'), cancel());
  await harness.agent.update('t', chunk('still here'));
  await harness.clock.advance(1_000);
  expect(editorReceived(harness)).toEqual(['agent_message_chunk', { 2: CANCELLED }]);
  expect(harness.agent.endings.at(-1)).toMatchObject({ except: [{ since: { pid: 1 } }] });
  expect(harness.events).toMatchObject([{ type: 'stop', processes: { shared: 1 } }]);
  await harness.agent.send({ id: 3, result: { stopReason: 'end_turn' } });
  expect(editorReceived(harness)).toEqual([{ 3: { stopReason: 'end_turn' } }]);
});

test('closing a session stops its prompt first; one that is answered for is closed for, too', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2), { id: 3, method: 'session/close', params: { sessionId: 's' } });
  expect(agentReceived(harness)).toEqual(['session/prompt 2', 'session/close 3']);
  await harness.agent.send({ id: 3, result: { a: 1 } }, { id: 2, result: CANCELLED });
  expect(editorReceived(harness)).toEqual([{ 2: CANCELLED }, { 3: { a: 1 } }]);
  await openSession(harness, 's');
  await harness.send(prompt(4), { id: 5, method: 'session/close', params: { sessionId: 's' } });
  await harness.clock.advance(2_000);
  expect(editorReceived(harness)).toEqual([{ 4: CANCELLED }, { 5: {} }]);
  await openSession(harness, 'u');
  await harness.send(prompt(6, 'u'), { id: 7, method: 'session/close', params: { sessionId: 'u' } });
  harness.agent.exit(1);
  await harness.clock.advance(10);
  expect(editorReceived(harness)).toEqual([{ 6: CANCELLED }, { 7: {} }]);
});

/** A prompt that the agent never answers, cancelled, and the next one. */
async function wedge(harness: ProxyHarness): Promise<void> {
  await harness.send(prompt(2), cancel());
  await harness.clock.advance(1_000);
  await harness.send(prompt(3));
  harness.received();
  await harness.clock.advance(5_000);
}

test('the next prompt waits for an agent that is only slow, and keeps its memory', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2), cancel());
  await harness.clock.advance(1_000);
  await harness.send(prompt(3));
  await harness.clock.advance(4_000);
  expect(agentReceived(harness).filter((one) => one === 'session/prompt 3')).toEqual([]);
  await harness.agent.send({ id: 2, result: CANCELLED });
  expect(agentReceived(harness)).toEqual(['session/prompt 3']);
  expect(harness.agents).toHaveLength(1);
});

test('an agent that takes no other prompt either is started again, and its session loaded', async () => {
  const harness = await openProxy();
  await initialize(harness, { loadSession: true });
  await harness.send({ id: 8, method: 'session/set_mode', params: { sessionId: 's', modeId: 'ask' } });
  await wedge(harness);
  expect(harness.agents.map(({ isEnded }) => isEnded)).toEqual([true, false]);
  const [hello] = harness.agent.received();
  expect(hello).toMatchObject({ method: 'initialize', params: { protocolVersion: 1 } });
  await harness.agent.send({ id: hello!.id, result: { protocolVersion: 1, agentCapabilities: { loadSession: true } } });
  const [load] = harness.agent.received();
  expect(load).toMatchObject({ method: 'session/load', params: { sessionId: 's', cwd: '/w', mcpServers: [] } });
  await harness.agent.update('s', chunk('history'));
  await harness.agent.send({ id: load!.id, result: {} });
  const [mode] = harness.agent.received();
  expect(mode).toMatchObject({ method: 'session/set_mode', params: { modeId: 'ask' } });
  await harness.agent.send({ id: mode!.id, result: {} });
  expect(agentReceived(harness)).toEqual(['session/prompt 3']);
  const [failure, notice] = harness.received();
  expect(brief(failure!)).toEqual({ 8: -32603 });
  expect(JSON.stringify(notice)).toContain('This conversation was loaded');
  await harness.agent.send({ id: 3, result: { stopReason: 'end_turn' } });
  expect(editorReceived(harness)).toEqual([{ 3: { stopReason: 'end_turn' } }]);
  expect(harness.events.map(({ type }) => type)).toEqual(['stop', 'restart', 'restore']);
});

test('an agent that cannot load gets a new session in place of the old one, and the user is notified', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await wedge(harness);
  await harness.agent.send({ id: harness.agent.received()[0]!.id, result: { protocolVersion: 1 } });
  const [fresh] = harness.agent.received();
  expect(fresh).toMatchObject({ method: 'session/new', params: { cwd: '/w' } });
  await harness.agent.send({ id: fresh!.id, result: { sessionId: 'other' } });
  expect(harness.agent.received()).toMatchObject([{ method: 'session/prompt', params: { sessionId: 'other' } }]);
  expect(JSON.stringify(harness.received())).toContain('it has forgotten this one');
  await harness.agent.update('other', chunk('hi'));
  await harness.agent.send({ id: 90, method: 'session/request_permission', params: { sessionId: 'other' } });
  expect(harness.received()).toMatchObject([{ params: { sessionId: 's' } }, { params: { sessionId: 's' } }]);
  await harness.send(cancel());
  expect(harness.agent.received()).toMatchObject([{ params: { sessionId: 'other' } }, { id: 90 }]);
  // A name that the editor knows for another session is not given twice.
  await harness.send({ id: 'n', method: 'session/new', params: {} });
  await harness.agent.send({ id: 'n', result: { sessionId: 's' } });
  expect(String(harness.received().at(-1)?.result?.['sessionId'])).toMatch(/^s-./);
});

test('an agent that exits when it is cancelled is started again; prompts of other sessions fail', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await openSession(harness, 't');
  await harness.send(prompt(2), prompt(3, 't'), { id: 4, method: 'session/list', params: {} }, cancel());
  harness.agent.exit(1);
  await harness.clock.advance(10);
  expect(editorReceived(harness)).toEqual([{ 3: -32603 }, { 2: CANCELLED }]);
  await harness.agent.send({ id: harness.agent.received()[0]!.id, result: { protocolVersion: 1 } });
  expect(agentReceived(harness)).toEqual(['session/list 4']);
  expect(harness.events).toMatchObject([{ type: 'restart' }, { type: 'stop', agent: 'exited' }]);
});

test('an agent that exits during the stop of one request fails the other prompt of the session', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2), prompt(3), { method: '$/cancel_request', params: { requestId: 2 } });
  harness.agent.exit(1);
  await harness.clock.advance(10);
  expect(editorReceived(harness)).toEqual([{ 3: -32603 }, { 2: CANCELLED }]);
});

test('an agent that exits by itself ends the proxy with its code, and no prompt counts as cancelled', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2));
  harness.agent.exit(7);
  expect(await harness.proxy.closed).toEqual({ code: 7 });
  expect(editorReceived(harness)).toEqual([{ 2: -32603 }]);
});

test('an agent that answers nothing at all after it was answered for is started again', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2), cancel());
  await harness.clock.advance(1_000);
  await harness.send({ id: 5, method: 'session/new', params: {} });
  await harness.clock.advance(5_000);
  expect(harness.agents).toHaveLength(2);
  await harness.agent.send({ id: harness.agent.received()[0]!.id, result: {} });
  expect(agentReceived(harness)).toEqual(['session/new 5']);
});

test('the end of the input cancels what runs, and ends the agent', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2));
  harness.input.end();
  await harness.clock.advance(2_000);
  expect(await harness.proxy.closed).toEqual({ code: 0 });
  expect(agentReceived(harness).slice(0, 2)).toEqual(['session/prompt 2', 'session/cancel']);
  expect(harness.agent.isEnded).toBe(true);
  expect(harness.events).toMatchObject([{ type: 'stop', by: 'input-end' }, { type: 'end' }]);
});

test('an editor that leaves while the agent is started again waits for no greeting', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await wedge(harness);
  harness.input.end();
  await harness.clock.advance(2_000);
  expect(await harness.proxy.closed).toEqual({ code: 0 });
  expect(harness.agents.map(({ isEnded }) => isEnded)).toEqual([true, true]);
});

test('a close from outside answers what runs before it ends, and twice is once', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2));
  const closed = Promise.all([harness.proxy.close('SIGTERM'), harness.proxy.close('SIGINT')]);
  await harness.clock.advance(3_000);
  expect(await closed).toEqual([{ code: 0 }, { code: 0 }]);
  expect(editorReceived(harness)).toEqual([{ 2: CANCELLED }]);
  expect(harness.clock.pending).toBe(0);
});

test('lines that are not messages are not passed on; those of the editor are rejected', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.agent.send('Loading…', '{"half":', '[1]', '', '7', '{}');
  expect(editorReceived(harness)).toEqual([]);
  expect(harness.events.map(({ type }) => type)).toEqual(Array(5).fill('problem'));
  await harness.send('{"half":', `[${JSON.stringify(prompt(2))}]`);
  expect(editorReceived(harness)).toEqual([{ null: -32700 }, { null: -32600 }]);
  expect(agentReceived(harness)).toEqual([]);
});

test('a response that is too long fails, on either side', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send({ id: 5, method: 'session/list', params: {} });
  const long = 'x'.repeat(33 * 1024 * 1024);
  await harness.agent.send({ id: 5, result: { long } });
  await harness.agent.send({ id: 6, method: 'fs/read_text_file', params: { sessionId: 's' } });
  expect(editorReceived(harness)).toEqual([{ 5: -32603 }, 'fs/read_text_file 6']);
  await harness.send({ id: 6, result: { long } });
  expect(agentReceived(harness)).toEqual(['session/list 5', { 6: -32603 }]);
});

test('an editor that does not read keeps the agent waiting, not the memory growing', async () => {
  const harness = await openProxy();
  await initialize(harness);
  await harness.send(prompt(2));
  harness.output.pause();
  const text = 'x'.repeat(100_000);
  for (let sent = 0; sent < 200; sent++) await harness.agent.update('s', chunk(text));
  expect(harness.agent.stdout.readableLength + harness.agent.stdout.writableLength).toBeGreaterThan(5_000_000);
  expect(harness.output.writableLength + harness.output.readableLength).toBeLessThan(8_000_000);
  harness.output.resume();
  await harness.clock.advance(1);
  expect(harness.received()).toHaveLength(200);
});

const idle = (stopReason: string): object => ({ sessionUpdate: 'state_update', state: 'idle', stopReason });

test('a stop in v2 ends with an update, and cancels calls', async () => {
  const harness = await openProxy();
  await initialize(harness, { version: 2 });
  await harness.send(prompt(2));
  await harness.agent.send({ id: 2, result: { messageId: 'm' } });
  await harness.agent.update('s', { sessionUpdate: 'tool_call_update', toolCallId: 'a', status: 'in_progress' });
  await harness.send(cancel());
  await harness.agent.update('s', idle('end_turn'));
  await harness.agent.update('s', chunk('late'));
  expect(editorReceived(harness)).toEqual([
    { 2: { messageId: 'm' } },
    'tool_call_update a in_progress',
    'tool_call_update a cancelled',
    'state_update idle cancelled',
  ]);
  await harness.send(prompt(3), cancel());
  await harness.clock.advance(1_000);
  await harness.agent.update('s', idle('end_turn'));
  expect(editorReceived(harness)).toEqual([{ 3: -32800 }, 'state_update idle cancelled']);
  await harness.send(prompt(4));
  await harness.agent.send({ id: 4, result: { messageId: 'm' } });
  await harness.agent.update('s', idle('end_turn'));
  expect(editorReceived(harness)).toEqual([{ 4: { messageId: 'm' } }, 'state_update idle end_turn']);
  await harness.send(prompt(5), cancel());
  await harness.agent.send({ id: 5, error: { code: -32800, message: 'cancelled' } });
  expect(editorReceived(harness)).toEqual([{ 5: -32800 }]);
  expect(harness.events).toMatchObject([{ agent: 'other-answer' }, { agent: 'answered-for' }, { agent: 'error' }]);
});

test('a cancel in v2 also reaches work that no prompt started', async () => {
  const harness = await openProxy();
  await initialize(harness, { version: 2 });
  await harness.agent.update('s', { sessionUpdate: 'state_update', state: 'running' });
  await harness.send(cancel());
  expect(agentReceived(harness)).toEqual(['session/cancel']);
  await harness.agent.update('s', idle('cancelled'));
  await harness.send(cancel());
  expect(agentReceived(harness)).toEqual([]);
});
