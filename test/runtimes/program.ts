// One program that must give the same results on every runtime: Node, Bun, Deno, a worker and a browser. It needs only
// the language and the web's own globals.
import { closeOpenCalls, createCallRecords, guardAiSdkTools } from '@whoa/ai-sdk';
import {
  CancellationToken,
  createAgent,
  createAgentTool,
  createConversations,
  defineTool,
  guard,
  type Outcome,
  type StopMode,
} from '@whoa/core';
import type { InputSchema } from '@whoa/core/embed';
import { createLateResults } from '@whoa/core/embed';
import type { Model, ModelPart } from '@whoa/core/model';
import { MAX_DETAILS_BYTES } from '../../packages/core/src/tool/bounds.ts';

type Say = (line: string) => void;

/** Runs every scenario and returns its output. */
export async function run(): Promise<string[]> {
  const lines: string[] = [];
  const scenarios = { tokens, listeners, longWaits, guards, details, runs, undo, subAgents, conversations, aiSdk };
  for (const [name, scenario] of Object.entries(scenarios)) {
    await scenario((line) => lines.push(`${name}: ${line}`));
  }
  return lines;
}

async function tokens(say: Say): Promise<void> {
  for (const mode of ['graceful', 'now', 'kill'] as const) {
    const token = new CancellationToken();
    const child = token.child('child');
    const levels: string[] = [];
    child.onCancel((level, { message }) => levels.push(`${level} (${message})`));
    const { result } = token.cancel(`asked ${mode}`, { mode });
    say(`${mode}: ${result}, ${levels.join()}, signal ${child.signal.aborted}, again ${token.cancel().result}`);
    token[Symbol.dispose]();
    say(`after its end: ${token.cancel().result}`);
  }
  const ladder = new CancellationToken();
  const climbed = new Promise<string>((resolve) => {
    const levels: string[] = [];
    ladder.onCancel((level) => {
      levels.push(level);
      if (level === 'kill') resolve(levels.join());
    });
  });
  ladder.cancel({ kind: 'deadline' }, { mode: { drainMs: 5, abortMs: 5 } });
  say(`a ladder climbs ${await climbed}; ${(ladder.signal.reason as Error).name}`);
  const controller = new AbortController();
  const followed = CancellationToken.from(controller.signal);
  controller.abort('the tab was closed');
  say(`a signal: ${followed.level}, ${followed.reason?.message}`);
}

async function listeners(say: Say): Promise<void> {
  const token = new CancellationToken();
  const heard: string[] = [];
  token.onCancel(() => {
    throw new Error('a listener that throws');
  });
  token.onCancel((level) => heard.push(level));
  say(`${token.cancel({}, { mode: 'now' }).result}, the other heard ${heard.join()}`);
  token[Symbol.dispose]();
  const failing = { 'run-start': () => Promise.reject(new Error('a hook that rejects')) };
  const outcome = await createAgent({ name: 'a', model: createModel([[{ text: 'fine' }]]), hooks: failing }).run('x')
    .outcome;
  say(`with a hook that rejects: ${outcome.status}`);
}

async function longWaits(say: Say): Promise<void> {
  const token = new CancellationToken();
  for (const ms of [2 ** 31, 2 ** 40, Infinity]) token.cancelAfter(ms, { kind: 'deadline' });
  await pause(20);
  say(`cancelled: ${token.isCancelled}`);
  token[Symbol.dispose]();
}

async function guards(say: Say): Promise<void> {
  const token = new CancellationToken();
  const lateResults = createLateResults();
  let finish = (_value: string): void => {};
  const deaf = guard(() => new Promise<string>((resolve) => (finish = resolve)), { name: 'deaf', token, lateResults });
  token.cancel({}, { mode: { abortMs: 10 } });
  say(`deaf work: ${await readErrorName(deaf)}, abandoned ${lateResults.entries().length}`);
  finish('late');
  await pause(5);
  say(`late: ${lateResults.entries()[0]?.late?.state}`);
  const slow = guard(({ signal }) => stopped(signal), { name: 'slow', timeoutMs: 10 });
  say(`too slow: ${await readErrorName(slow)}`);
  say(`in time: ${await guard(() => pause(1).then(() => 'value'), { name: 'quick', timeoutMs: 5_000 })}`);
  const untidy = guard(({ defer }) => defer(() => Promise.reject(new Error('untidy'))), { name: 'untidy' });
  say(`an untidy one: ${String(await untidy)}`);
  say(`a wrong setting: ${await readErrorName(guard(() => 1, { name: 'x', timeoutMs: Number.NaN }))}`);
}

async function details(say: Say): Promise<void> {
  for (const [name, size] of [
    ['small', 10],
    ['large', MAX_DETAILS_BYTES],
  ] as const) {
    const tool = plain('big', () => ({ content: 'done', details: { text: 'ü'.repeat(size) } }));
    const model = createModel([[{ call: 'big' }], [{ text: 'seen' }]]);
    const { calls } = await createAgent({ name: 'a', model, tools: [tool] }).run('x').outcome;
    const kept = calls[0]?.details as { text?: string; cut?: string; bytes?: number };
    say(`${name}: ${kept.text?.length ?? `${kept.cut}, ${kept.bytes} bytes`}`);
  }
}

async function runs(say: Say): Promise<void> {
  const quick = plain('quick', () => ({ content: 'quick', details: { a: 1 } }));
  const model = createModel([[{ text: 'I look. ' }, { call: 'quick' }], [{ text: 'Done.' }]]);
  const run = createAgent({ name: 'a', model, tools: [quick] }).run('x');
  const events = new Set<string>();
  for await (const { type } of run.events) events.add(type);
  say(tell(await run.outcome));
  say([...events].join());
  const stops = [
    { mode: 'graceful', slowMs: 30 },
    { mode: 'now', slowMs: 30 },
    { mode: 'kill', slowMs: Infinity },
    { mode: { drainMs: 10, abortMs: 10 }, slowMs: Infinity },
  ] as const;
  for (const { mode, slowMs } of stops) {
    const outcome = await cancelled(mode, slowMs);
    say(`${typeof mode === 'string' ? mode : 'a ladder'}: ${tell(outcome)}; ${tellStop(outcome)}`);
  }
  const hurried = createAgent({
    name: 'a',
    model: createModel([[{ waitMs: 60_000 }]]),
    budgets: { maxDurationMs: 10 },
  });
  say(`a deadline: ${tell(await hurried.run('x').outcome)}`);
}

/** Runs a wave of three tools, one quick, one that obeys its signal and one that ignores it, and stops it. */
async function cancelled(mode: StopMode, slowMs: number): Promise<Outcome> {
  const tools = [
    plain('quick', () => 'quick'),
    plain('listening', async (_input, { signal }) => {
      await Promise.race([stopped(signal), pause(slowMs)]);
      return 'listened';
    }),
    plain('slow', async () => {
      await pause(slowMs);
      return 'slow';
    }),
  ];
  const model = createModel([[{ call: 'quick' }, { call: 'listening' }, { call: 'slow' }], [{ text: 'never said' }]]);
  const run = createAgent({ name: 'a', model, tools }).run('x');
  for await (const event of run.events) {
    if (event.type === 'call-start' && event.tool === 'slow') run.cancel('enough', { mode });
  }
  return run.outcome;
}

async function undo(say: Say): Promise<void> {
  const undone: string[] = [];
  const book = defineTool({
    ...definition('book', () => ({ content: 'booked', details: { id: 7 } })),
    undo: ({ details: kept }) => {
      undone.push(JSON.stringify(kept));
    },
  });
  const model = createModel([[{ call: 'book' }], [{ waitMs: 60_000 }]]);
  const run = createAgent({ name: 'a', model, tools: [book] }).run('x');
  for await (const event of run.events) if (event.type === 'call-end') run.cancel({}, { mode: 'now', undo: true });
  const outcome = await run.outcome;
  say(`${tell(outcome)}; undone ${undone.join()}`);
}

async function subAgents(say: Say): Promise<void> {
  const child = createAgent({ name: 'child', model: createModel([[{ text: 'so far ' }, { waitMs: 60_000 }]]) });
  const tools = [createAgentTool(child, { description: 'helps' })];
  const model = createModel([[{ call: 'child', input: { task: 'help' } }], [{ text: 'over' }]]);
  const run = createAgent({ name: 'parent', model, tools }).run('x');
  for await (const event of run.events) {
    if (event.type === 'call-event' && event.event.type === 'text') run.cancel({}, { mode: 'now' });
  }
  say(tell(await run.outcome));
}

async function conversations(say: Say): Promise<void> {
  const model = createModel([[{ text: 'one ' }, { waitMs: 60_000 }], [{ text: 'two' }]]);
  const sent: string[] = [];
  let started = (): void => {};
  const beginning = new Promise<void>((resolve) => (started = resolve));
  const agent = createAgent({ name: 'a', model, stopMode: 'now', hooks: { text: () => started() } });
  const talk = createConversations({ agent, onReply: ({ text }) => sent.push(text) });
  const first = talk.processMessage('c', 'first');
  await beginning;
  const second = talk.processMessage('c', 'second');
  say(`${(await first).status}, ${(await second).status}: ${sent.join()}`);
  say(
    `history: ${talk
      .history('c')
      .map(({ role }) => role)
      .join()}`,
  );
  await talk[Symbol.asyncDispose]();
}

async function aiSdk(say: Say): Promise<void> {
  const token = new CancellationToken();
  const calls = createCallRecords();
  const deaf = { execute: (): Promise<string> => new Promise(() => {}) };
  const { look } = guardAiSdkTools({ look: deaf }, { token, calls });
  const messages = [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: {} }] },
  ];
  const execute = look.execute as (input: unknown, options: object) => Promise<unknown>;
  const looking = readErrorName(Promise.resolve(execute({}, { toolCallId: 'c1', messages: messages.slice(0, 1) })));
  token.cancel({}, { mode: { abortMs: 5 } });
  say(`a deaf tool of the AI SDK: ${await looking}`);
  const closed = closeOpenCalls(messages as Parameters<typeof closeOpenCalls>[0], calls);
  say(
    `closed: ${closed.map(({ role }) => role).join()}, ${JSON.stringify(closed.at(-1)?.content).includes('unknown')}`,
  );
}

type Scripted = { text: string } | { call: string; input?: unknown } | { waitMs: number };

/** A model that replies as scripted, and stops immediately when it is cancelled. */
function createModel(replies: readonly (readonly Scripted[])[]): Model {
  let asked = 0;
  return {
    name: 'scripted',
    async *stream(_request, { signal }): AsyncGenerator<ModelPart> {
      const reply = replies[asked++] ?? [];
      for (const [index, part] of reply.entries()) {
        if ('waitMs' in part) await Promise.race([stopped(signal), pause(part.waitMs, signal)]);
        else if ('text' in part) yield { type: 'text', text: part.text };
        else yield { type: 'call-end', callId: `call_${asked}_${index}`, tool: part.call, input: part.input ?? {} };
      }
      yield { type: 'finish', stopReason: 'stop' };
    },
  };
}

const anything: InputSchema = { '~standard': { version: 1, vendor: 'runtimes', validate: (value) => ({ value }) } };

type Definition = Extract<Parameters<typeof defineTool<unknown>>[0], { readonly execute: unknown }>;

function definition(name: string, execute: Definition['execute']): Definition {
  return { name, description: name, inputSchema: anything, inputJsonSchema: { type: 'object' }, execute };
}

function plain(name: string, execute: Definition['execute']) {
  return defineTool(definition(name, execute));
}

/** Rejects when the signal fires. */
function stopped(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (ms === Infinity) return;
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => clearTimeout(timer));
  });
}

async function readErrorName(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'a value',
    (error: Error) => error.name,
  );
}

function tell(outcome: Outcome): string {
  const calls = outcome.calls.map(({ tool, state }) => `${tool} ${state}`);
  const reason = outcome.status === 'cancelled' ? ` (${outcome.reason.kind})` : '';
  return `${outcome.status}${reason} "${outcome.text}" [${calls.join()}] ${outcome.messages.length} messages`;
}

function tellStop(outcome: Outcome): string {
  if (outcome.status !== 'cancelled') return 'no stop';
  return `clean ${outcome.stop.isClean}`;
}
