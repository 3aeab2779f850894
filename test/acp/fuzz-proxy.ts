// Broken and misplaced frames on both sides of a proxy. Every frame that comes out on one side went in on the other, or
// is one of the few that the proxy sends itself.
import { createVirtualWorld } from '@whoa/core/testing';
import { FrameMaker, type Random } from './frames.ts';
import { type Line, openProxy, type ProxyHarness } from './proxied.ts';

const BURST = 20;
const SESSIONS = ['one', 'two', 'three'];

export interface ProxyFuzzReport {
  readonly toAgent: number;
  readonly toEditor: number;
  readonly stops: number;
  readonly restarts: number;
  readonly proxies: number;
  readonly problems: readonly string[];
}

/** Sends `frames` frames in each direction. When a proxy ends as expected, continues with another. */
export async function fuzzProxy({ frames, seed }: { frames: number; seed: number }): Promise<ProxyFuzzReport> {
  const world = createVirtualWorld({ seed });
  const report = { toAgent: 0, toEditor: 0, stops: 0, restarts: 0, proxies: 0, problems: [] as string[] };
  while (report.toAgent < frames && report.problems.length === 0) {
    const count = Math.min(1_000, frames - report.toAgent);
    const harness = await openProxy();
    const checker = new FrameChecker(harness);
    const random = (): number => world.random();
    await initialize(harness, checker, 1 + (report.proxies % 2));
    const editor = new FrameMaker(random, SESSIONS);
    for (let sent = 0; sent < count; sent += BURST) {
      for (let one = 0; one < BURST; one++) {
        checker.editorSends(editor.next());
        checker.agentSends(agentFrame(random, checker, editor));
      }
      await harness.clock.advance(Math.floor(random() * 2_000));
      checker.checkNew();
    }
    report.toAgent += count;
    report.toEditor += count;
    report.proxies++;
    harness.input.end();
    for (let waited = 0; waited < 200 && !checker.isClosed; waited++) await harness.clock.advance(1_000);
    if (!checker.isClosed) checker.problems.push('it did not end with its input');
    checker.checkNew();
    report.stops += harness.events.filter(({ type }) => type === 'stop').length;
    report.restarts += harness.events.filter(({ type }) => type === 'restart').length;
    report.problems.push(...checker.problems.map((problem) => `proxy ${report.proxies}: ${problem}`));
  }
  return report;
}

async function initialize(harness: ProxyHarness, checker: FrameChecker, version: number): Promise<void> {
  checker.editorSends(line({ id: 'hello', method: 'initialize', params: { protocolVersion: version } }));
  await harness.clock.advance(1);
  checker.agentSends(
    line({ id: 'hello', result: { protocolVersion: version, agentCapabilities: { loadSession: true } } }),
  );
  for (const sessionId of SESSIONS) {
    checker.editorSends(line({ id: sessionId, method: 'session/new', params: { cwd: '/w', mcpServers: [] } }));
    await harness.clock.advance(1);
    checker.agentSends(line({ id: sessionId, result: { sessionId } }));
  }
}

/** A frame that an agent might write: responses, requested or not, updates, questions, nonsense. */
function agentFrame(random: Random, checker: FrameChecker, nonsense: FrameMaker): Buffer {
  const pick = <Thing>(things: readonly Thing[]): Thing => things[Math.floor(random() * things.length)]!;
  const sessionId = pick([...SESSIONS, 'nobody']);
  const toolCallId = pick(['a', 'b', 'c']);
  const id = pick([checker.lastAsked, checker.lastAsked, 1_000, 'x', null]);
  const update = (change: object): object => ({ method: 'session/update', params: { sessionId, update: change } });
  const make = pick<() => object | Buffer>([
    () => ({ id, result: { stopReason: pick(['end_turn', 'cancelled', 'odd', 7]) } }),
    () => ({ id, error: { code: -32603, message: 'no' } }),
    () => ({ id, result: pick([null, 1, {}, { sessionId }]) }),
    () => update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'x' } }),
    () => update({ sessionUpdate: 'tool_call', toolCallId, status: pick(['pending', undefined, 7, 'failed']) }),
    () => update({ sessionUpdate: 'tool_call_update', toolCallId, status: pick(['completed', 'in_progress', null]) }),
    () => update({ sessionUpdate: 'state_update', state: pick(['idle', 'running', 'requires_action', 5]) }),
    () => ({
      id: checker.nextQuestion(),
      method: pick(['session/request_permission', 'terminal/create']),
      params: { sessionId },
    }),
    () => ({
      id: checker.nextQuestion(),
      method: 'fs/write_text_file',
      params: pick<unknown>([{ sessionId }, [], null, 7]),
    }),
    () => ({ method: '$/cancel_request', params: { requestId: checker.nextQuestion() - 2 } }),
    () => nonsense.next(),
  ]);
  const made = make();
  return Buffer.isBuffer(made) ? made : line(made);
}

/** Records the frames that went in, and checks those that come out. */
class FrameChecker {
  readonly problems: string[] = [];
  isClosed = false;
  lastAsked: unknown = 0;
  readonly #harness: ProxyHarness;
  readonly #fromEditor = new Set<string>();
  readonly #fromAgent = new Set<string>();
  readonly #answered = new Set<unknown>();
  #question = 50_000;

  constructor(harness: ProxyHarness) {
    this.#harness = harness;
    harness.proxy.closed.then(
      () => (this.isClosed = true),
      (error: unknown) => this.problems.push(String(error)),
    );
  }

  nextQuestion(): number {
    return ++this.#question;
  }

  editorSends(frame: Buffer): void {
    for (const one of frame.toString().split('\n')) this.#fromEditor.add(essence(one));
    if (this.#harness.input.writable) this.#harness.input.write(frame);
  }

  agentSends(frame: Buffer): void {
    for (const one of frame.toString().split('\n')) this.#fromAgent.add(essence(one));
    if (this.#harness.agent.stdout.writable) this.#harness.agent.stdout.write(frame);
  }

  checkNew(): void {
    for (const one of this.#harness.receivedLines())
      this.#check(one, { passed: this.#fromAgent, isOwn: isOwnToEditor });
    for (const agent of this.#harness.agents) {
      for (const one of agent.receivedLines()) {
        this.#check(one, { passed: this.#fromEditor, isOwn: isOwnToAgent });
        const { id, method } = JSON.parse(one) as Line;
        if (method === undefined) continue;
        if (id !== undefined) this.lastAsked = id;
        // A restarted process responds to the proxy's requests.
        if (typeof id === 'string' && id.startsWith('whoa-'))
          this.agentSends(line({ id, result: { sessionId: `${id}` } }));
      }
    }
    const failed = this.#harness.events.find(
      (event) => event.type === 'problem' && !event.message.includes('no message'),
    );
    if (failed !== undefined) this.problems.push(JSON.stringify(failed));
  }

  #check(text: string, { passed, isOwn }: { passed: ReadonlySet<string>; isOwn: (message: Line) => boolean }): void {
    const message = JSON.parse(text) as Line;
    if (!passed.has(essence(text)) && !isOwn(message)) this.problems.push(`invented: ${text.slice(0, 300)}`);
    if (message.method !== undefined || isOwn !== isOwnToEditor) return;
    if (typeof message.id !== 'number' || message.id < 1_000) return;
    if (this.#answered.has(message.id)) this.problems.push(`answered twice: ${message.id}`);
    this.#answered.add(message.id);
  }
}

/** A line without the name of its session, which may differ on both sides. */
function essence(text: string): string {
  try {
    const message = JSON.parse(text) as Line;
    const { sessionId: _, ...params } = (message.params ?? {}) as Record<string, unknown>;
    return JSON.stringify(typeof message.params === 'object' ? { ...message, params } : message);
  } catch {
    return text;
  }
}

const isCancel = ({ method }: Line): boolean => method === 'session/cancel' || method === '$/cancel_request';

/** Frames that the proxy sends to an agent: cancels, rejections, and its own requests. Never a yes. */
function isOwnToAgent(message: Line): boolean {
  const { id, method, result, error } = message;
  if (method !== undefined) return isCancel(message) || String(id).startsWith('whoa-');
  if (error !== undefined) return error.code === -32800 || error.code === -32603;
  const { outcome } = (result?.['outcome'] ?? {}) as { outcome?: string };
  return outcome === 'cancelled' || result?.['action'] === 'cancel';
}

/**
 * Frames that the proxy sends to an editor: withdrawn questions, closed calls, ends of cancelled prompts, rejections, a
 * notice.
 */
function isOwnToEditor(message: Line): boolean {
  const { method, params, result, error } = message;
  if (method === 'session/update') {
    const { status, state, sessionUpdate } = params?.update ?? {};
    return status === 'failed' || status === 'cancelled' || state === 'idle' || sessionUpdate === 'agent_message_chunk';
  }
  if (method !== undefined) return isCancel(message) || method === 'terminal/release';
  if (error !== undefined) return [-32800, -32603, -32700, -32600].includes(error.code);
  // A process that was started again named a session like another one.
  if (/^\w+-[0-9a-f-]{36}$/.test(String(result?.['sessionId']))) return true;
  return result?.['stopReason'] === 'cancelled' || Object.keys(result ?? { a: 1 }).length === 0;
}

function line(message: object): Buffer {
  return Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}
