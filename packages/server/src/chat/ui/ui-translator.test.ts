import type { JournalEvent, TaskRecord } from '@whoa/tasks';
import {
  parseJsonEventStream,
  readUIMessageStream,
  type UIMessage,
  type UIMessageChunk,
  uiMessageChunkSchema,
} from 'ai';
import { expect, test } from 'vitest';
import type { AssistantPart } from '../../../../core/src/run/history/message.ts';
import { formMessage } from './message-chunks.ts';
import { closingChunks } from './ui-chunks.ts';
import { UiTranslator } from './ui-translator.ts';

const of = (event: object): JournalEvent => ({ runId: 'r', at: 0, ...event }) as unknown as JournalEvent;
const turnEnd = (...content: AssistantPart[]) => of({ type: 'turn-end', message: { role: 'assistant', content } });
const task = (status: TaskRecord['status'], outcome: object = {}) =>
  ({ id: 't', status, outcome: { status, ...outcome } }) as unknown as TaskRecord;
const SUCCESS = task('success');
const STOPPED = task('cancelled', { reason: { kind: 'user', at: 0 }, stopReport: { isClean: true } });

const call: AssistantPart = { type: 'call', callId: 'c', tool: 'look', input: { q: 1 } };
const result = { callId: 'c', tool: 'look', state: 'finished', content: 'found', details: { rows: 3 } };

/** A run with drafts; `isDraft` marks those that a later entry replaces. */
const RUN: readonly { readonly event: JournalEvent; readonly isDraft?: true }[] = [
  { event: of({ type: 'run-start' }) },
  { event: of({ type: 'turn-start', turn: 1 }) },
  { event: of({ type: 'thinking', text: 'Hm' }), isDraft: true },
  { event: of({ type: 'thinking', text: 'm. ' }), isDraft: true },
  { event: of({ type: 'text', text: 'Let ' }), isDraft: true },
  { event: of({ type: 'text', text: 'me see. ' }), isDraft: true },
  { event: of({ type: 'call-planned', callId: 'c', tool: 'look' }) },
  { event: turnEnd({ type: 'thinking', text: 'Hmm. ' }, { type: 'text', text: 'Let me see. ' }, call) },
  { event: of({ type: 'call-start', callId: 'c', tool: 'look', input: { q: 1 } }) },
  { event: of({ type: 'call-update', callId: 'c', tool: 'look', partial: { content: 'fo' } }), isDraft: true },
  { event: of({ type: 'call-end', result }) },
  { event: of({ type: 'turn-start', turn: 2 }) },
  { event: of({ type: 'text', text: 'It is ' }), isDraft: true },
  { event: of({ type: 'text', text: 'there.' }), isDraft: true },
  { event: turnEnd({ type: 'text', text: 'It is there.' }) },
];

function translate(events: readonly JournalEvent[], end: TaskRecord): UIMessageChunk[] {
  const translator = new UiTranslator('t');
  return [...translator.start(), ...events.flatMap((event) => translator.translate(event)), ...translator.end(end)];
}

/** Reads chunks as a page does, which rejects invalid ones. */
function overTheWire(chunks: readonly UIMessageChunk[]): ReadableStream<UIMessageChunk> {
  const { body } = new Response(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(''));
  return parseJsonEventStream({ stream: body!, schema: uiMessageChunkSchema }).pipeThrough(
    new TransformStream({
      transform(parsed, controller) {
        if (!parsed.success) throw parsed.error;
        controller.enqueue(parsed.value);
      },
    }),
  );
}

async function readMessage(events: readonly JournalEvent[], end: TaskRecord = SUCCESS): Promise<UIMessage | undefined> {
  const stream = overTheWire(translate(events, end));
  let message: UIMessage | undefined;
  for await (const state of readUIMessageStream({ stream, terminateOnError: true })) message = state;
  return message;
}

const shape = (message: UIMessage | undefined) =>
  message?.parts.map((part) => {
    if (part.type === 'text' || part.type === 'reasoning') return [part.type, part.text, part.state];
    return part.type === 'dynamic-tool' ? [part.toolName, part.state, part.output ?? part.errorText] : [part.type];
  });

const WHOLE = [
  ['step-start'],
  ['reasoning', 'Hmm. ', 'done'],
  ['text', 'Let me see. ', 'done'],
  ['look', 'output-available', { content: 'found', details: { rows: 3 } }],
  ['step-start'],
  ['text', 'It is there.', 'done'],
];

test('a reply is the same for readers that joined at any moment', async () => {
  for (let since = 0; since <= RUN.length; since++) {
    // Earlier entries are read in their compacted form, later ones as they come.
    for (let until = since; until <= RUN.length; until++) {
      const events = RUN.filter(({ isDraft }, at) => isDraft !== true || (at >= since && at < until)).map(
        ({ event }) => event,
      );
      expect(shape(await readMessage(events)), `from ${since} to ${until}`).toEqual(WHOLE);
    }
  }
});

test('open parts of a stopped reply are closed, and the last chunk contains the reason', async () => {
  for (let at = 0; at <= RUN.length; at++) {
    const events = RUN.slice(0, at).map(({ event }) => event);
    const chunks = translate(events, STOPPED);
    expect(chunks.at(-1)).toEqual({ type: 'abort', reason: 'user' });
    expect(chunks.at(-2)).toMatchObject({ type: 'data-stop-report', data: { isClean: true } });
    for (const [kind] of [['text'], ['reasoning']])
      expect(chunks.filter(({ type }) => type === `${kind}-start`).length).toBe(
        chunks.filter(({ type }) => type === `${kind}-end`).length,
      );
    const open = (shape(await readMessage(events, STOPPED)) ?? []).filter(([, state]) => state === 'input-streaming');
    expect(open).toEqual([]);
  }
});

test('a turn that another worker makes again, or that is tried again, is shown once', async () => {
  const [start, turn, ...said] = RUN.map(({ event }) => event);
  const lost = said.slice(0, 4);
  const retry = of({ type: 'turn-retry', attempt: 1, delayMs: 1, error: 'overloaded' });
  expect(shape(await readMessage([start!, turn!, ...lost, start!, turn!, ...said]))).toEqual(WHOLE);
  expect(shape(await readMessage([start!, turn!, ...lost, retry, ...said]))).toEqual(WHOLE);
  const postponed = of({ type: 'turn-postponed', error: 'overloaded', since: 0, attempts: 1, until: 5 });
  const waited = [start!, turn!, ...lost, postponed, start!, turn!, ...said];
  expect(shape(await readMessage(waited))).toEqual(WHOLE);
  const waiting = { type: 'data-waiting', data: { until: 5 }, transient: true };
  expect(translate(waited, SUCCESS)).toContainEqual(waiting);
  // The second time the words were others.
  const other = turnEnd({ type: 'text', text: 'Something else.' });
  expect(shape(await readMessage([start!, turn!, ...lost, other]))).toEqual([
    ['step-start'],
    ['text', 'Something else.', 'done'],
  ]);
});

test('a call that did not finish shows it, and an unknown call is left out', async () => {
  const interrupted = { callId: 'c', tool: 'look', state: 'interrupted', content: 'Interrupted (user).' };
  const events = [of({ type: 'turn-start', turn: 1 }), turnEnd(call), of({ type: 'call-end', result: interrupted })];
  expect(shape(await readMessage(events, STOPPED))).toContainEqual(['look', 'output-error', 'Interrupted (user).']);
  expect(shape(await readMessage([of({ type: 'call-end', result })]))).toEqual([]);
});

test('readers do not see errors of the application, unless it provides a message', () => {
  const failed = task('failed', { error: { message: 'connect postgres://admin:secret@db' } });
  expect(JSON.stringify(translate([], failed))).not.toContain('secret');
  const own = new UiTranslator('t', { describeError: ({ message }) => `Oh: ${message.length}` });
  expect(own.end(failed)).toMatchObject([
    { type: 'start' },
    { type: 'error', errorText: 'Oh: 34' },
    { type: 'finish' },
  ]);
});

test('a page accepts the chunks that close another loop’s reply after it was cut off', async () => {
  const open: UIMessageChunk[] = [
    { type: 'start-step' },
    { type: 'text-start', id: 'words' },
    { type: 'tool-input-start', toolCallId: 'half', toolName: 'look' },
    { type: 'tool-input-delta', toolCallId: 'half', inputTextDelta: '{"q":' },
  ];
  const closing: string[] = [];
  const draft = { message: await formMessage('m', open), chunks: open };
  for await (const { type } of overTheWire(closingChunks(draft))) closing.push(type);
  expect(closing).toEqual(['text-end', 'tool-input-error', 'finish-step']);
});

test('a page shows a sub-agent’s questions at the call that it knows, one at a time', async () => {
  const ask = (id: string, callId: string) =>
    of({ type: 'approval-question', id, question: { callId, tool: 'look › pay', fields: [] } });
  const answer = (callId: string) => of({ type: 'approval-answered', callId, tool: 'look › pay', approved: true });
  const events = [...RUN.slice(0, 9).map(({ event }) => event), ask('q1', 'c/a'), answer('c/a'), ask('q2', 'c/b')];
  const open = (await readMessage(events, STOPPED))?.parts.find((part) => part.type === 'dynamic-tool');
  expect(open).toMatchObject({ toolCallId: 'c', approval: { id: 'q2' } });
  const whole = [...events, answer('c/b'), ...RUN.slice(10).map(({ event }) => event)];
  expect(shape(await readMessage(whole))).toEqual(WHOLE);
});

test("a loop's own start and end keep their metadata, under the id of the task; a late start only adds its own", () => {
  const pass = (...chunks: object[]) => of({ type: 'ui-chunks', chunks });
  const translator = new UiTranslator('t');
  const events = [
    pass({ type: 'start', messageId: 'x', messageMetadata: { a: 1 } }, { type: 'later-kind', x: 1 }),
    pass({ type: 'start', messageMetadata: { b: 1 } }, { type: 'start' }),
    pass({ type: 'finish', finishReason: 'stop', messageMetadata: { c: 1 } }),
  ];
  expect(events.flatMap((event) => translator.translate(event))).toEqual([
    { type: 'start', messageId: 't', messageMetadata: { a: 1 } },
    { type: 'later-kind', x: 1 },
    { type: 'message-metadata', messageMetadata: { b: 1 } },
  ]);
  expect(translator.end(task('success'))).toEqual([
    { type: 'finish', finishReason: 'stop', messageMetadata: { c: 1 } },
  ]);
  const stopped = new UiTranslator('t');
  stopped.translate(events[2]!);
  expect(stopped.end(STOPPED)).toMatchObject([
    { type: 'start' },
    { type: 'message-metadata', messageMetadata: { c: 1 } },
    { type: 'data-stop-report' },
    { type: 'abort' },
  ]);
});

test.for([
  ['unknown', /^Outcome unknown: the process that ran it stopped/],
  ['not-started', /^Not started: cancelled \(user\)/],
] as const)('a call whose worker was lost ends as in the stop report: %s', ([state, text]) => {
  const translator = new UiTranslator('t');
  const events = [of({ type: 'run-start' }), of({ type: 'turn-start', turn: 1 }), turnEnd(call)];
  for (const event of events) translator.translate(event);
  const reason = { kind: 'user', at: 0 };
  const chunks = translator.end(task('cancelled', { reason, stopReport: { reason, calls: [{ callId: 'c', state }] } }));
  expect(chunks.find(({ type }) => type === 'tool-output-error')).toMatchObject({
    toolCallId: 'c',
    errorText: expect.stringMatching(text) as string,
  });
});

test('words that are taken back are replaced by what the journal has of the turn', () => {
  const start = [of({ type: 'run-start' }), of({ type: 'turn-start', turn: 1 })];
  const said = (text: string) => of({ type: 'text', text });
  const translator = new UiTranslator('t');
  for (const event of [...start, said('Once '), said('upon')]) translator.translate(event);
  const chunks = translator.takeBack([...start, said('Once ')]);
  expect(chunks.map(({ type }) => type)).toEqual(['reset-step', 'text-start', 'text-delta']);
  expect(chunks.at(-1)).toMatchObject({ delta: 'Once ' });
  translator.translate(turnEnd({ type: 'text', text: 'Once ' }));
  expect(translator.takeBack(start)).toEqual([]);
});

test("chunks of the application's own loop that are taken back are replaced by those of its last step", () => {
  const kept = { type: 'text-delta', id: 'a', delta: 'Once ' } as const;
  const pass = (...chunks: UIMessageChunk[]) => ({ type: 'ui-chunks', chunks }) as const;
  const translator = new UiTranslator('t');
  for (const one of [pass({ type: 'start' }, { type: 'start-step' }), pass(kept), pass({ ...kept, delta: 'lost' })])
    translator.translate(one);
  expect(translator.takeBack([pass({ type: 'start' }, { type: 'start-step' }), pass(kept)])).toEqual([
    { type: 'reset-step' },
    kept,
  ]);
});
