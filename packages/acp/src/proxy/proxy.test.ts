import { expect, test } from 'vitest';
import {
  cancel,
  chunk,
  greet,
  type Line,
  openSession,
  playProxy,
  prompt,
  type Stage,
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

const seen = (stage: Stage): unknown[] => stage.got().map(brief);
const told = (stage: Stage): unknown[] => stage.agent.got().map(brief);
const permission = (id: number): object => ({
  id,
  method: 'session/request_permission',
  params: { sessionId: 's', options: [{ optionId: 'yes', kind: 'allow_once' }] },
});
const YES = { outcome: { outcome: 'selected', optionId: 'yes' } };

test('what is not about a stop passes byte for byte, in both directions', async () => {
  const stage = await playProxy();
  const toAgent = [
    '{"id": 1,"jsonrpc":"2.0", "method":"initialize","params":{"protocolVersion":1,"_meta":{"ä":"\\u00e4 💥"}}}',
    '{"jsonrpc":"2.0","id":"x","method":"_anyone/knows","params":[1,2]}',
    '{"jsonrpc":"2.0","method":"_note"}\r',
  ];
  await stage.send(...toAgent);
  expect(stage.agent.gotLines()).toEqual(toAgent);
  const toEditor = [
    '{"result":{"protocolVersion":1 , "x":1e3},"id":1,"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"no","data":{"__proto__":1}}}',
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"nobody knows","update":{"sessionUpdate":"new"}}}',
    '{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/a"}}',
  ];
  await stage.agent.say(...toEditor);
  expect(stage.gotLines()).toEqual(toEditor);
  const answer = '{"jsonrpc":"2.0", "id":7,"result":{"content":""}}';
  await stage.send(answer);
  expect(stage.agent.gotLines()).toEqual([answer]);
});

test('a message without a session passes as it is, also if the editor has one whose name is empty', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2, ''), cancel(''));
  await stage.clock.advance(1_000);
  stage.got();
  const line = '{"jsonrpc":"2.0","id":7,"method":"fs/write_text_file","params":{"path":"/a"}}';
  await stage.agent.say(line);
  expect(stage.gotLines()).toEqual([line]);
});

test('a prompt that no one cancels passes as it is, whatever it says', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2));
  await stage.agent.update('s', chunk('hi'));
  await stage.agent.update('s', { sessionUpdate: 'tool_call', toolCallId: 'c', status: 'in_progress' });
  await stage.agent.say({ id: 2, result: { stopReason: 'end_turn', usage: 1 } });
  await stage.agent.update('s', chunk('afterwards'));
  expect(seen(stage)).toEqual([
    'agent_message_chunk',
    'tool_call c in_progress',
    { 2: { stopReason: 'end_turn', usage: 1 } },
    'agent_message_chunk',
  ]);
  expect(stage.events).toEqual([]);
  expect(stage.agent.endings).toEqual([]);
});

test('an agent that stops is only watched; its processes are ended, then its answer passes', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2), cancel());
  expect(told(stage)).toEqual(['session/prompt 2', 'session/cancel']);
  const answer = '{"jsonrpc":"2.0","id":2, "result":{"stopReason":"cancelled","_meta":{}}}';
  await stage.agent.say(answer);
  expect(stage.gotLines()).toEqual([answer]);
  expect(stage.agent.endings).toHaveLength(1);
  expect(stage.events).toMatchObject([
    { type: 'stop', agent: 'cancelled', by: 'session/cancel', processes: { ended: 2 } },
  ]);
});

test('an agent that does not answer is asked again, then answered for, with everything closed before', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2));
  await stage.agent.update('s', { sessionUpdate: 'tool_call', toolCallId: 'a', status: 'pending' });
  await stage.agent.update('s', { sessionUpdate: 'tool_call', toolCallId: 'b' });
  await stage.agent.update('s', { sessionUpdate: 'tool_call_update', toolCallId: 'b', status: 'completed' });
  await stage.agent.say({ id: 'q1', method: 'terminal/create', params: { sessionId: 's' } });
  await stage.send({ id: 'q1', result: { terminalId: 't' } });
  await stage.agent.say({ id: 'q2', method: 'terminal/wait_for_exit', params: { sessionId: 's', terminalId: 't' } });
  await stage.agent.say(permission(50));
  stage.got();
  stage.agent.got();
  await stage.send(cancel());
  expect(seen(stage)).toEqual(['$/cancel_request']);
  expect(told(stage)).toEqual(['session/cancel', { 50: { outcome: { outcome: 'cancelled' } } }]);
  await stage.clock.advance(500);
  expect(told(stage)).toEqual(['session/cancel', '$/cancel_request']);
  expect(stage.agent.endings).toHaveLength(1);
  expect(seen(stage)).toEqual([]);
  await stage.clock.advance(500);
  expect(seen(stage)).toEqual([
    '$/cancel_request',
    'terminal/release whoa-',
    'tool_call_update a failed',
    { 2: CANCELLED },
  ]);
  expect(told(stage)).toEqual([{ q2: -32800 }]);
  expect(stage.events).toMatchObject([{ agent: 'answered-for', closedCalls: 1, closedQuestions: 2, ms: 1_000 }]);
});

test('what a prompt that was answered for says later is dropped, until the agent has answered and there is another', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2));
  await stage.agent.update('s', { sessionUpdate: 'tool_call', toolCallId: 'a', status: 'pending' });
  await stage.send(cancel());
  await stage.clock.advance(1_000);
  stage.got();
  stage.agent.got();
  await stage.agent.update('s', chunk('late'));
  await stage.agent.update('s', { sessionUpdate: 'usage_update', used: 1, size: 2 });
  await stage.agent.say(permission(60), { id: 61, method: 'fs/write_text_file', params: { sessionId: 's' } });
  expect(told(stage)).toEqual([{ 60: { outcome: { outcome: 'cancelled' } } }, { 61: -32800 }]);
  await stage.agent.say({ id: 2, result: { stopReason: 'end_turn' } }, { id: 2, result: { stopReason: 'end_turn' } });
  await stage.agent.update('s', chunk('later'));
  expect(seen(stage)).toEqual(['usage_update']);
  await stage.send(prompt(3));
  expect(told(stage)).toEqual(['session/prompt 3']);
  await stage.agent.update('s', { sessionUpdate: 'tool_call_update', toolCallId: 'a', status: 'completed' });
  await stage.agent.update('s', chunk('new'));
  await stage.agent.say({ id: 3, result: { stopReason: 'end_turn' } });
  expect(seen(stage)).toEqual(['agent_message_chunk', { 3: { stopReason: 'end_turn' } }]);
  expect(stage.agents).toHaveLength(1);
});

test('a cancel before a prompt, again, and after its end does not reach the agent', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(cancel(), cancel('nobody'), prompt(2));
  expect(told(stage)).toEqual(['session/prompt 2']);
  await stage.agent.say({ id: 2, result: { stopReason: 'end_turn' } });
  await stage.send(cancel());
  expect(told(stage)).toEqual([]);
  await stage.send(prompt(3), cancel(), cancel());
  expect(told(stage)).toEqual(['session/prompt 3', 'session/cancel']);
  await stage.agent.say({ id: 3, result: CANCELLED });
  await stage.send(cancel(), { method: '$/cancel_request', params: { requestId: 3 } });
  expect(told(stage)).toEqual([]);
  expect(seen(stage)).toEqual([{ 2: { stopReason: 'end_turn' } }, { 3: CANCELLED }]);
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
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2), cancel());
  await stage.agent.say({ id: 2, ...answer });
  expect(seen(stage)).toEqual([{ 2: result }]);
  expect(stage.events).toMatchObject([{ agent }]);
});

test('a request is cancelled like a session, and one that is no prompt is the agent’s own affair', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2), { id: 9, method: 'session/list', params: {} });
  const line = '{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":9}}';
  await stage.send(line, { method: '$/cancel_request', params: { requestId: 2 } }, cancel());
  expect(stage.agent.gotLines().slice(2)).toEqual([line, expect.stringContaining('"requestId":2')]);
  await stage.agent.say({ id: 2, error: { code: -32800, message: 'cancelled' } });
  expect(seen(stage)).toEqual([{ 2: -32800 }]);
});

test('a yes after the cancel reaches no one, and nobody but the editor says yes', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2));
  await stage.agent.say(permission(50));
  await stage.send({ id: 50, result: YES }, { id: 50, result: YES }, { id: 77, result: YES });
  expect(told(stage)).toEqual(['session/prompt 2', { 50: YES }]);
  await stage.agent.say(permission(51));
  await stage.send(cancel());
  await stage.send({ id: 51, result: YES });
  await stage.agent.say(permission(52), { method: '$/cancel_request', params: { requestId: 51 } });
  const outcome = { outcome: { outcome: 'cancelled' } };
  expect(told(stage)).toEqual(['session/cancel', { 51: outcome }, { 52: outcome }]);
  expect(seen(stage)).toEqual(['session/request_permission 50', 'session/request_permission 51', '$/cancel_request']);
});

test('a prompt that is sent while the one before is being stopped waits for its end', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2), cancel(), prompt(3));
  expect(told(stage)).toEqual(['session/prompt 2', 'session/cancel']);
  await stage.agent.say({ id: 2, result: CANCELLED });
  expect(told(stage)).toEqual(['session/prompt 3']);
  await stage.agent.say({ id: 3, result: { stopReason: 'end_turn' } });
  expect(seen(stage)).toEqual([{ 2: CANCELLED }, { 3: { stopReason: 'end_turn' } }]);
});

test('a prompt that waits is cancelled without the agent', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2), cancel(), prompt(3), prompt(4), cancel());
  await stage.send(prompt(5), { method: '$/cancel_request', params: { requestId: 5 } });
  expect(seen(stage)).toEqual([{ 3: CANCELLED }, { 4: CANCELLED }, { 5: CANCELLED }]);
  await stage.agent.say({ id: 2, result: CANCELLED });
  expect(told(stage)).toEqual(['session/prompt 2', 'session/cancel']);
});

test('a stop does not touch another session, nor processes that may be of its prompt', async () => {
  const stage = await playProxy();
  await greet(stage);
  await openSession(stage, 't');
  await stage.send(prompt(2), prompt(3, 't'), cancel());
  await stage.agent.update('t', chunk('still here'));
  await stage.clock.advance(1_000);
  expect(seen(stage)).toEqual(['agent_message_chunk', { 2: CANCELLED }]);
  expect(stage.agent.endings.at(-1)).toMatchObject({ except: [{ since: { pid: 1 } }] });
  await stage.agent.say({ id: 3, result: { stopReason: 'end_turn' } });
  expect(seen(stage)).toEqual([{ 3: { stopReason: 'end_turn' } }]);
});

test('closing a session stops its prompt first; one that is answered for is closed for, too', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2), { id: 3, method: 'session/close', params: { sessionId: 's' } });
  expect(told(stage)).toEqual(['session/prompt 2', 'session/close 3']);
  await stage.agent.say({ id: 3, result: { a: 1 } }, { id: 2, result: CANCELLED });
  expect(seen(stage)).toEqual([{ 2: CANCELLED }, { 3: { a: 1 } }]);
  await openSession(stage, 's');
  await stage.send(prompt(4), { id: 5, method: 'session/close', params: { sessionId: 's' } });
  await stage.clock.advance(2_000);
  expect(seen(stage)).toEqual([{ 4: CANCELLED }, { 5: {} }]);
  await openSession(stage, 'u');
  await stage.send(prompt(6, 'u'), { id: 7, method: 'session/close', params: { sessionId: 'u' } });
  stage.agent.exit(1);
  await stage.clock.advance(10);
  expect(seen(stage)).toEqual([{ 6: CANCELLED }, { 7: {} }]);
});

/** A prompt that the agent never answers, cancelled, and the next one. */
async function wedge(stage: Stage): Promise<void> {
  await stage.send(prompt(2), cancel());
  await stage.clock.advance(1_000);
  await stage.send(prompt(3));
  stage.got();
  await stage.clock.advance(5_000);
}

test('an agent that is only slow is waited for at the next prompt, and keeps its memory', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2), cancel());
  await stage.clock.advance(1_000);
  await stage.send(prompt(3));
  await stage.clock.advance(4_000);
  expect(told(stage).filter((one) => one === 'session/prompt 3')).toEqual([]);
  await stage.agent.say({ id: 2, result: CANCELLED });
  expect(told(stage)).toEqual(['session/prompt 3']);
  expect(stage.agents).toHaveLength(1);
});

test('an agent that takes no other prompt either is started again, and its session loaded', async () => {
  const stage = await playProxy();
  await greet(stage, { loadSession: true });
  await stage.send({ id: 8, method: 'session/set_mode', params: { sessionId: 's', modeId: 'ask' } });
  await wedge(stage);
  expect(stage.agents.map(({ isEnded }) => isEnded)).toEqual([true, false]);
  const [hello] = stage.agent.got();
  expect(hello).toMatchObject({ method: 'initialize', params: { protocolVersion: 1 } });
  await stage.agent.say({ id: hello!.id, result: { protocolVersion: 1, agentCapabilities: { loadSession: true } } });
  const [load] = stage.agent.got();
  expect(load).toMatchObject({ method: 'session/load', params: { sessionId: 's', cwd: '/w', mcpServers: [] } });
  await stage.agent.update('s', chunk('history'));
  await stage.agent.say({ id: load!.id, result: {} });
  const [mode] = stage.agent.got();
  expect(mode).toMatchObject({ method: 'session/set_mode', params: { modeId: 'ask' } });
  await stage.agent.say({ id: mode!.id, result: {} });
  expect(told(stage)).toEqual(['session/prompt 3']);
  const [failure, notice] = stage.got();
  expect(brief(failure!)).toEqual({ 8: -32603 });
  expect(JSON.stringify(notice)).toContain('This conversation was loaded');
  await stage.agent.say({ id: 3, result: { stopReason: 'end_turn' } });
  expect(seen(stage)).toEqual([{ 3: { stopReason: 'end_turn' } }]);
  expect(stage.events.map(({ type }) => type)).toEqual(['stop', 'restart', 'restore']);
});

test('an agent that cannot load gets a new session in place of the old one, and the user is told', async () => {
  const stage = await playProxy();
  await greet(stage);
  await wedge(stage);
  await stage.agent.say({ id: stage.agent.got()[0]!.id, result: { protocolVersion: 1 } });
  const [fresh] = stage.agent.got();
  expect(fresh).toMatchObject({ method: 'session/new', params: { cwd: '/w' } });
  await stage.agent.say({ id: fresh!.id, result: { sessionId: 'other' } });
  expect(stage.agent.got()).toMatchObject([{ method: 'session/prompt', params: { sessionId: 'other' } }]);
  expect(JSON.stringify(stage.got())).toContain('it has forgotten this one');
  await stage.agent.update('other', chunk('hi'));
  await stage.agent.say({ id: 90, method: 'session/request_permission', params: { sessionId: 'other' } });
  expect(stage.got()).toMatchObject([{ params: { sessionId: 's' } }, { params: { sessionId: 's' } }]);
  await stage.send(cancel());
  expect(stage.agent.got()).toMatchObject([{ params: { sessionId: 'other' } }, { id: 90 }]);
  // A name that the editor knows for another session is not given twice.
  await stage.send({ id: 'n', method: 'session/new', params: {} });
  await stage.agent.say({ id: 'n', result: { sessionId: 's' } });
  expect(String(stage.got().at(-1)?.result?.['sessionId'])).toMatch(/^s-./);
});

test('an agent that exits when it is cancelled is started again; prompts of other sessions fail', async () => {
  const stage = await playProxy();
  await greet(stage);
  await openSession(stage, 't');
  await stage.send(prompt(2), prompt(3, 't'), { id: 4, method: 'session/list', params: {} }, cancel());
  stage.agent.exit(1);
  await stage.clock.advance(10);
  expect(seen(stage)).toEqual([{ 3: -32603 }, { 2: CANCELLED }]);
  await stage.agent.say({ id: stage.agent.got()[0]!.id, result: { protocolVersion: 1 } });
  expect(told(stage)).toEqual(['session/list 4']);
  expect(stage.events).toMatchObject([{ type: 'restart' }, { type: 'stop', agent: 'exited' }]);
});

test('when the agent exits in the stop of one request, the other prompt of the session fails', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2), prompt(3), { method: '$/cancel_request', params: { requestId: 2 } });
  stage.agent.exit(1);
  await stage.clock.advance(10);
  expect(seen(stage)).toEqual([{ 3: -32603 }, { 2: CANCELLED }]);
});

test('an agent that exits by itself ends the proxy with its code, and no prompt counts as cancelled', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2));
  stage.agent.exit(7);
  expect(await stage.proxy.closed).toEqual({ code: 7 });
  expect(seen(stage)).toEqual([{ 2: -32603 }]);
});

test('an agent that answers nothing at all after it was answered for is started again', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2), cancel());
  await stage.clock.advance(1_000);
  await stage.send({ id: 5, method: 'session/new', params: {} });
  await stage.clock.advance(5_000);
  expect(stage.agents).toHaveLength(2);
  await stage.agent.say({ id: stage.agent.got()[0]!.id, result: {} });
  expect(told(stage)).toEqual(['session/new 5']);
});

test('the end of the input cancels what runs, and ends the agent', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2));
  stage.input.end();
  await stage.clock.advance(2_000);
  expect(await stage.proxy.closed).toEqual({ code: 0 });
  expect(told(stage).slice(0, 2)).toEqual(['session/prompt 2', 'session/cancel']);
  expect(stage.agent.isEnded).toBe(true);
  expect(stage.events).toMatchObject([{ type: 'stop', by: 'input-end' }, { type: 'end' }]);
});

test('an editor that leaves while the agent is started again waits for no greeting', async () => {
  const stage = await playProxy();
  await greet(stage);
  await wedge(stage);
  stage.input.end();
  await stage.clock.advance(2_000);
  expect(await stage.proxy.closed).toEqual({ code: 0 });
  expect(stage.agents.map(({ isEnded }) => isEnded)).toEqual([true, true]);
});

test('a close from outside answers what runs before it ends, and twice is once', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2));
  const closed = Promise.all([stage.proxy.close('SIGTERM'), stage.proxy.close('SIGINT')]);
  await stage.clock.advance(3_000);
  expect(await closed).toEqual([{ code: 0 }, { code: 0 }]);
  expect(seen(stage)).toEqual([{ 2: CANCELLED }]);
  expect(stage.clock.pending).toBe(0);
});

test('lines that are no messages are not passed on; those of the editor are refused', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.agent.say('Loading…', '{"half":', '[1]', '', '7', '{}');
  expect(seen(stage)).toEqual([]);
  expect(stage.events.map(({ type }) => type)).toEqual(Array(5).fill('problem'));
  await stage.send('{"half":', `[${JSON.stringify(prompt(2))}]`);
  expect(seen(stage)).toEqual([{ null: -32700 }, { null: -32600 }]);
  expect(told(stage)).toEqual([]);
});

test('a response that is too long fails, on either side', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send({ id: 5, method: 'session/list', params: {} });
  const long = 'x'.repeat(33 * 1024 * 1024);
  await stage.agent.say({ id: 5, result: { long } });
  await stage.agent.say({ id: 6, method: 'fs/read_text_file', params: { sessionId: 's' } });
  expect(seen(stage)).toEqual([{ 5: -32603 }, 'fs/read_text_file 6']);
  await stage.send({ id: 6, result: { long } });
  expect(told(stage)).toEqual(['session/list 5', { 6: -32603 }]);
});

test('an editor that does not read keeps the agent waiting, not the memory growing', async () => {
  const stage = await playProxy();
  await greet(stage);
  await stage.send(prompt(2));
  stage.output.pause();
  const text = 'x'.repeat(100_000);
  for (let sent = 0; sent < 200; sent++) await stage.agent.update('s', chunk(text));
  expect(stage.agent.stdout.readableLength + stage.agent.stdout.writableLength).toBeGreaterThan(5_000_000);
  expect(stage.output.writableLength + stage.output.readableLength).toBeLessThan(8_000_000);
  stage.output.resume();
  await stage.clock.advance(1);
  expect(stage.got()).toHaveLength(200);
});

const idle = (stopReason: string): object => ({ sessionUpdate: 'state_update', state: 'idle', stopReason });

test('in v2 the end of a stop is an update, and calls are cancelled', async () => {
  const stage = await playProxy();
  await greet(stage, { version: 2 });
  await stage.send(prompt(2));
  await stage.agent.say({ id: 2, result: { messageId: 'm' } });
  await stage.agent.update('s', { sessionUpdate: 'tool_call_update', toolCallId: 'a', status: 'in_progress' });
  await stage.send(cancel());
  await stage.agent.update('s', idle('end_turn'));
  await stage.agent.update('s', chunk('late'));
  expect(seen(stage)).toEqual([
    { 2: { messageId: 'm' } },
    'tool_call_update a in_progress',
    'tool_call_update a cancelled',
    'state_update idle cancelled',
  ]);
  await stage.send(prompt(3), cancel());
  await stage.clock.advance(1_000);
  await stage.agent.update('s', idle('end_turn'));
  expect(seen(stage)).toEqual([{ 3: -32800 }, 'state_update idle cancelled']);
  await stage.send(prompt(4));
  await stage.agent.say({ id: 4, result: { messageId: 'm' } });
  await stage.agent.update('s', idle('end_turn'));
  expect(seen(stage)).toEqual([{ 4: { messageId: 'm' } }, 'state_update idle end_turn']);
  await stage.send(prompt(5), cancel());
  await stage.agent.say({ id: 5, error: { code: -32800, message: 'cancelled' } });
  expect(seen(stage)).toEqual([{ 5: -32800 }]);
  expect(stage.events).toMatchObject([{ agent: 'other-answer' }, { agent: 'answered-for' }, { agent: 'error' }]);
});

test('in v2 a cancel also reaches work that no prompt asked for', async () => {
  const stage = await playProxy();
  await greet(stage, { version: 2 });
  await stage.agent.update('s', { sessionUpdate: 'state_update', state: 'running' });
  await stage.send(cancel());
  expect(told(stage)).toEqual(['session/cancel']);
  await stage.agent.update('s', idle('cancelled'));
  await stage.send(cancel());
  expect(told(stage)).toEqual([]);
});
