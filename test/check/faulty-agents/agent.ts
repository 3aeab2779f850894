// A small agent that does everything right that one process can do, and one thing wrong: node agent.ts BUG.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { Bug, Flawless } from './bugs.ts';
import { type ChatCall, type ChatMessage, streamReply } from './chat-model.ts';

const bug = (process.argv[2] ?? 'none') as Bug | Flawless;

interface Session {
  readonly id: string;
  readonly history: ChatMessage[];
  turn: Turn | undefined;
  isSticky: boolean;
  hasCancelled: boolean;
}

interface Turn {
  readonly requestId: number;
  readonly stopper: AbortController;
  readonly open: Set<string>;
  readonly children: Set<ChildProcess>;
  /** Messages to send only after the response. */
  readonly late: (() => void)[];
}

interface Incoming {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: { readonly outcome?: { readonly outcome: string } };
}

const sessions = new Map<string, Session>();
const questions = new Map<number, (isAllowed: boolean) => void>();
const running = new Set<ChildProcess>();
let lastId = 1_000;

function send(message: object): void {
  if (bug === 'garbage') process.stdout.write('Loading settings… 50 %\n{"half":\n[1]\n');
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}

function update(session: Session, change: object): void {
  send({ method: 'session/update', params: { sessionId: session.id, update: change } });
}

function receive({ id, method, params = {}, result }: Incoming): void {
  const session = sessions.get(String(params['sessionId']));
  if (method === 'initialize') {
    const sessionCapabilities = { close: {} };
    send({
      id,
      result: {
        protocolVersion: 1,
        agentInfo: { name: bug, version: '1' },
        agentCapabilities: { sessionCapabilities },
      },
    });
  } else if (method === 'session/new') {
    const created = {
      id: String(sessions.size + 1),
      history: [],
      turn: undefined,
      isSticky: false,
      hasCancelled: false,
    };
    sessions.set(created.id, created);
    if (bug === 'trusts-folder') startServers();
    send({ id, result: { sessionId: created.id } });
  } else if (method === 'session/prompt' && session !== undefined) {
    const [{ text }] = params['prompt'] as [{ text: string }];
    start(session, { requestId: id!, text });
  } else if (method === 'session/cancel') {
    for (const one of bug === 'all-sessions' ? sessions.values() : session ? [session] : []) cancel(one);
  } else if (method === 'session/close' && session !== undefined) {
    cancel(session);
    follow(settled(session).then(() => send({ id, result: {} })));
  } else if (method === '$/cancel_request') {
    const asked = [...sessions.values()].find(({ turn }) => turn?.requestId === params['requestId']);
    if (asked === undefined || bug === 'no-cancel-request') return;
    if (bug === 'wrong-cancel-request') send({ id: params['requestId'] as number, result: { stopReason: 'end_turn' } });
    cancel(asked);
  } else if (method === undefined && id !== undefined) {
    questions.get(id)?.(result?.outcome?.outcome === 'selected');
  }
}

function startServers(): void {
  if (!existsSync('.mcp.json')) return;
  const { mcpServers } = JSON.parse(readFileSync('.mcp.json', 'utf8')) as {
    mcpServers: Record<string, { command: string; args: string[] }>;
  };
  for (const { command, args } of Object.values(mcpServers)) spawn(command, args, { stdio: 'ignore' });
}

/** Runs work in the background; its failure ends the agent. */
function follow(promise: Promise<unknown>): void {
  promise.catch((error: unknown) => {
    throw error;
  });
}

async function settled(session: Session): Promise<void> {
  while (session.turn !== undefined) await new Promise((resolve) => setTimeout(resolve, 5));
}

function cancel(session: Session): void {
  const { turn } = session;
  const isSecond = session.hasCancelled;
  if ((bug === 'sticky-cancel' && turn === undefined) || (bug === 'second-cancel' && isSecond)) session.isSticky = true;
  session.hasCancelled ||= turn !== undefined;
  if (bug === 'dies' && turn !== undefined) process.exit(1);
  turn?.stopper.abort();
}

function start(session: Session, { requestId, text }: { requestId: number; text: string }): void {
  if (session.turn !== undefined) {
    queue(session, { requestId, text });
    return;
  }
  if (bug === 'no-next' && session.hasCancelled) {
    send({ id: requestId, error: { code: -32603, message: 'busy' } });
    return;
  }
  const turn: Turn = { requestId, stopper: new AbortController(), open: new Set(), children: new Set(), late: [] };
  if (session.isSticky) turn.stopper.abort();
  session.isSticky = false;
  const begin = (): void => {
    session.turn = turn;
    follow(runTurn(session, turn, text).then((answer) => end(session, turn, answer)));
  };
  // Reserves the turn in a later tick, so that a cancel that was read together with the prompt finds none.
  if (bug === 'lost-race') setTimeout(begin, 50);
  else begin();
}

function queue(session: Session, prompt: { requestId: number; text: string }): void {
  follow(settled(session).then(() => start(session, prompt)));
}

type Reply = { readonly stopReason: string } | Error;

function end(session: Session, { requestId, stopper, late }: Turn, reply: Reply): void {
  const isCancelled = stopper.signal.aborted;
  const answer = (): void => {
    session.turn = undefined;
    if (reply instanceof Error) send({ id: requestId, error: { code: -32603, message: reply.message } });
    else send({ id: requestId, result: reply });
    for (const one of late) one();
    if (isCancelled && bug === 'two-ends') send({ id: requestId, result: reply });
    if (isCancelled && bug === 'floods') flood(session);
  };
  if (isCancelled && bug === 'never-answers') return;
  if (isCancelled && bug === 'slow') setTimeout(answer, 2_000);
  else answer();
}

let flooding: NodeJS.Timeout | undefined;

/** One session at a time, because of the load. */
function flood(session: Session): void {
  clearInterval(flooding);
  flooding = setInterval(() => {
    for (let count = 0; count < 20; count++)
      update(session, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'and on '.repeat(100) } });
  }, 5).unref();
}

async function runTurn(session: Session, turn: Turn, text: string): Promise<Reply> {
  const { history } = session;
  const { signal } = turn.stopper;
  const before = history.length;
  history.push({ role: 'user', content: text });
  try {
    while (!signal.aborted) {
      if ((await step(session, turn)) === 'done') break;
    }
  } catch (error) {
    if (!signal.aborted || bug === 'abort-error') return error as Error;
  }
  if (!signal.aborted) return { stopReason: 'end_turn' };
  if (bug === 'asks-again')
    await streamReply(history, {
      reply: { text: '', calls: [] },
      signal: new AbortController().signal,
      onText: () => {},
    });
  if (bug === 'forgets-turn') history.length = before;
  return { stopReason: bug === 'end-turn' ? 'end_turn' : 'cancelled' };
}

/** One reply of the model and the calls in it. */
async function step(session: Session, turn: Turn): Promise<'done' | 'more'> {
  const { history } = session;
  const { signal } = turn.stopper;
  const reply = { text: '', calls: [] as ChatCall[] };
  const onText = (text: string): void => {
    if (!signal.aborted) update(session, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
  };
  const read = streamReply(history, {
    reply,
    signal: bug === 'model-goes-on' ? new AbortController().signal : signal,
    onText,
  });
  try {
    await (bug === 'model-goes-on' ? Promise.race([read, aborted(signal)]) : read);
  } finally {
    if (signal.aborted) keepPartial(session, reply);
    if (signal.aborted && bug === 'late-call') for (const call of reply.calls) follow(runCommand(call, turn));
  }
  history.push({
    role: 'assistant',
    content: reply.text || null,
    ...(reply.calls.length > 0 && { tool_calls: reply.calls }),
  });
  if (reply.calls.length === 0) return 'done';
  const calls = reply.calls.map((call) => () => runCall(session, turn, call));
  if (bug === 'side-by-side') await Promise.all(calls.map((run, i) => delay(20 * i).then(run)));
  else for (const run of calls) await run();
  return 'more';
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

function keepPartial({ history }: Session, { text, calls }: { text: string; calls: readonly ChatCall[] }): void {
  const isBroken = bug === 'broken-arguments' && calls.length > 0;
  const kept = bug === 'forgets-text' ? '(no reply)' : text;
  if (kept !== '' || isBroken)
    history.push({ role: 'assistant', content: kept || null, ...(isBroken && { tool_calls: [...calls] }) });
  if (isBroken) for (const { id } of calls) history.push({ role: 'tool', tool_call_id: id, content: 'cancelled' });
}

async function runCall(session: Session, turn: Turn, call: ChatCall): Promise<void> {
  const { signal } = turn.stopper;
  const { id: toolCallId } = call;
  const isSkipped = signal.aborted && bug !== 'second-call';
  update(session, { sessionUpdate: 'tool_call', toolCallId, title: 'bash', status: 'in_progress' });
  const isRun = !isSkipped && (await isAllowed(session, turn));
  const run = isRun ? runCommand(call, turn) : undefined;
  const output = signal.aborted ? undefined : await run;
  const isCancelled = output === undefined || signal.aborted;
  const close = (): void =>
    update(session, { sessionUpdate: 'tool_call_update', toolCallId, status: isCancelled ? 'failed' : 'completed' });
  if (!isCancelled || (bug !== 'open-calls' && bug !== 'late-update')) close();
  else if (bug === 'late-update') turn.late.push(close);
  if (isCancelled && bug === 'dangling-call') return;
  const failure = bug === 'claims-success' ? 'ok' : 'The call was cancelled by the user.';
  session.history.push({ role: 'tool', tool_call_id: toolCallId, content: isCancelled ? failure : output });
}

async function isAllowed(session: Session, { stopper: { signal } }: Turn): Promise<boolean> {
  const id = ++lastId;
  const options = [{ optionId: 'yes', name: 'Allow', kind: 'allow_once' }];
  const toolCall = { toolCallId: `q${id}` };
  const asked = new Promise<boolean>((resolve) => questions.set(id, resolve));
  send({ id, method: 'session/request_permission', params: { sessionId: session.id, toolCall, options } });
  if (bug === 'waits-for-person') return asked;
  if (bug === 'late-yes')
    return Promise.race([asked, new Promise<boolean>((resolve) => setTimeout(resolve, 1_000, false))]);
  const isYes = await Promise.race([asked, aborted(signal).catch(() => false)]);
  if (signal.aborted && bug !== 'keeps-question') send({ method: '$/cancel_request', params: { requestId: id } });
  return isYes && (!signal.aborted || bug === 'second-call');
}

/** Runs a command in a separate process group. */
function runCommand(call: ChatCall, { stopper: { signal } }: Turn): Promise<string> {
  const { command } = JSON.parse(call.function.arguments) as { command: string };
  const start = bug === 'daemons' ? `setsid ${command} & wait` : `exec ${command}`;
  const child = spawn('sh', ['-c', start], {
    detached: bug !== 'only-root',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  running.add(child);
  let output = '';
  child.stdout.on('data', (data: Buffer) => (output += data.toString()));
  return new Promise((resolve) => {
    const finish = (): void => resolve(output);
    child.once('exit', () => {
      running.delete(child);
      finish();
    });
    const stop = (): void => stopCommand(child, finish);
    signal.addEventListener('abort', bug === 'side-by-side' ? () => setTimeout(stop, 500) : stop, { once: true });
    if (signal.aborted && bug !== 'late-call' && bug !== 'late-yes' && bug !== 'second-call') stop();
  });
}

function stopCommand(child: ChildProcess, finish: () => void): void {
  if (bug === 'tool-goes-on' || bug === 'sigterm-and-go') finish();
  if (bug === 'tool-goes-on') return;
  if (bug === 'only-root') child.kill('SIGKILL');
  else signalGroup(child, bug === 'only-sigterm' || bug === 'sigterm-and-go' ? 'SIGTERM' : 'SIGKILL');
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid!, signal);
  } catch {
    // It has ended.
  }
}

function quit(): void {
  if (bug !== 'orphans') for (const child of running) signalGroup(child, 'SIGKILL');
  process.exit(0);
}

const input = createInterface({ input: process.stdin });
input.on('line', (line) => receive(JSON.parse(line) as Incoming));
if (bug === 'ignores-eof') setInterval(() => {}, 60_000);
else input.once('close', quit);
process.on('SIGTERM', bug === 'ignores-sigterm' ? () => {} : quit);
