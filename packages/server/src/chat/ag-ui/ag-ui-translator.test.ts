import { HttpAgent } from '@ag-ui/client';
import { EventSchemas } from '@ag-ui/core/schemas';
import type { UIMessageChunk } from 'ai';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AgUiEvent } from './ag-ui-messages.ts';
import { AgUiTranslator } from './ag-ui-translator.ts';

async function translate(chunks: readonly UIMessageChunk[], isJoining = false): Promise<AgUiEvent[]> {
  const run = {
    threadId: 't',
    runId: 'r',
    taskId: 'task',
    before: [{ id: 'u', role: 'user', content: 'Go' } as const],
    isJoining,
    answered: new Set<string>(),
    resumed: new Set<string>(),
    usage: () => Promise.resolve({ inputTokens: 3, outputTokens: 4, isComplete: true }),
  };
  const source = (async function* () {
    yield* await Promise.resolve(chunks);
  })();
  const events: AgUiEvent[] = [];
  for await (const event of new AgUiTranslator(run).translate(source)) events.push(event);
  return events;
}

/** A reply with everything in it: words, thoughts, calls that end in every way, a step taken back, a question, a source. */
const REPLY: readonly UIMessageChunk[] = [
  { type: 'start', messageId: 'task' },
  { type: 'start-step' },
  { type: 'reasoning-start', id: 'a' },
  { type: 'reasoning-delta', id: 'a', delta: 'Hm.' },
  { type: 'reasoning-end', id: 'a' },
  { type: 'text-start', id: '0' },
  { type: 'text-delta', id: '0', delta: '' },
  { type: 'text-delta', id: '0', delta: 'Wrong' },
  { type: 'tool-input-start', toolCallId: 'c0', toolName: 'work' },
  { type: 'reset-step' },
  { type: 'text-start', id: '0' },
  { type: 'text-delta', id: '0', delta: 'Let me see.' },
  { type: 'text-end', id: '0' },
  { type: 'tool-input-start', toolCallId: 'c1', toolName: 'work' },
  { type: 'tool-input-delta', toolCallId: 'c1', inputTextDelta: '{"a":' },
  { type: 'tool-input-delta', toolCallId: 'c1', inputTextDelta: '1}' },
  { type: 'tool-input-available', toolCallId: 'c1', toolName: 'work', input: { a: 1 } },
  { type: 'tool-input-available', toolCallId: 'c2', toolName: 'work', input: {}, dynamic: true },
  { type: 'tool-input-start', toolCallId: 'c3', toolName: 'work' },
  { type: 'tool-input-error', toolCallId: 'c3', toolName: 'work', input: undefined, errorText: 'Not started' },
  { type: 'tool-approval-request', approvalId: 'q', toolCallId: 'c1' },
  { type: 'tool-approval-response', approvalId: 'q', approved: true },
  { type: 'tool-output-available', toolCallId: 'c1', output: { part: 1 }, preliminary: true },
  { type: 'tool-output-available', toolCallId: 'c1', output: { all: 2 } },
  { type: 'tool-output-error', toolCallId: 'c2', errorText: 'Interrupted' },
  { type: 'finish-step' },
  { type: 'start-step' },
  { type: 'steering-message', id: 's', parts: [{ type: 'text', text: 'And hurry' }] },
  { type: 'source-url', sourceId: 'x', url: 'https://example.com' },
  { type: 'data-weather', data: { sunny: true } },
  { type: 'text-start', id: '0' },
  { type: 'text-delta', id: '0', delta: 'Done.' },
  { type: 'text-end', id: '0' },
  { type: 'finish-step' },
];

const ABORT: UIMessageChunk = { type: 'abort', reason: 'user' };

/** The official client throws where events are out of order. */
async function readByClient(events: readonly AgUiEvent[]): Promise<string[]> {
  const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  const headers = { 'content-type': 'text/event-stream' };
  const agent = new HttpAgent({
    url: 'http://app.test',
    fetch: () => Promise.resolve(new Response(text, { headers })),
  });
  const seen: string[] = [];
  agent.subscribe({ onEvent: ({ event }) => void seen.push(event.type) });
  await agent.runAgent({ runId: 'r' });
  return seen;
}

/** Checks events with the official client and its schemas, and that nothing is open at the end. */
async function judge(events: readonly AgUiEvent[]): Promise<void> {
  for (const event of events) EventSchemas.parse(event);
  expect(await readByClient(events)).toEqual(events.map(({ type }) => type));
  const open = new Set<string>();
  for (const [index, event] of events.entries()) {
    const { type } = event;
    const id =
      'messageId' in event
        ? event.messageId
        : 'toolCallId' in event
          ? event.toolCallId
          : 'stepName' in event
            ? event.stepName
            : '';
    const key = `${type.replace(/_(STARTED|FINISHED|START|END)$/, '')} ${id}`;
    if (type === 'RUN_FINISHED' || type === 'RUN_ERROR') expect([index, [...open]]).toEqual([events.length - 1, []]);
    else if (/_(STARTED|START)$/.test(type) && type !== 'RUN_STARTED') open.add(key);
    else if (/_(FINISHED|END)$/.test(type)) expect(open.delete(key)).toBe(true);
  }
  expect(open.size).toBe(0);
}

test('a reply that is cancelled at any chunk ends as cancelled, with everything closed, in the order of the protocol', async () => {
  for (let cut = 0; cut <= REPLY.length; cut++) {
    const events = await translate([...REPLY.slice(0, cut), ABORT]);
    await judge(events);
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } });
  }
});

test('failed and successful replies are also closed once', async () => {
  for (let cut = 0; cut <= REPLY.length; cut++) {
    const failed = await translate([...REPLY.slice(0, cut), { type: 'error', errorText: 'Oh' }, { type: 'finish' }]);
    await judge(failed);
    expect(failed.at(-1)).toMatchObject({ type: 'RUN_ERROR', message: 'Oh' });
    const ended = await translate([...REPLY.slice(0, cut), { type: 'finish' }], true);
    await judge(ended);
    const type = REPLY[cut - 1]?.type === 'tool-approval-request' ? 'interrupt' : 'success';
    expect(ended.at(-1)).toMatchObject({ outcome: { type }, usage: [{ totalTokens: 7 }] });
  }
});

test('a run’s events are in order, no matter which chunks a loop streams', async () => {
  const chunk = fc.constantFrom(...REPLY.slice(1));
  await fc.assert(
    fc.asyncProperty(fc.array(chunk, { maxLength: 40 }), async (chunks) => judge(await translate([...chunks, ABORT]))),
    { numRuns: 100 },
  );
});

test('a reply whose stream breaks off has no end', async () => {
  const events = await translate(REPLY.slice(0, 8));
  expect(events.map(({ type }) => type)).not.toContain('RUN_FINISHED');
});

test('a repeated step’s text is withdrawn with it', async () => {
  const events = await translate([...REPLY.slice(0, 10), ABORT]);
  const snapshot = events.find(({ type }) => type === 'MESSAGES_SNAPSHOT');
  expect(snapshot).toEqual({ type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'u', role: 'user', content: 'Go' }] });
});
