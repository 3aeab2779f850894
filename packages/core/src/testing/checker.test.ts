// Every violation the checker knows, planted once in a history that is otherwise good.
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createAgent } from '../run/agent.ts';
import type { Message } from '../run/history/message.ts';
import type { Outcome } from '../run/report/outcome.ts';
import { CancellationToken } from '../stop/token/token.ts';
import { defineTool, type Tool } from '../tool/tool.ts';
import { checkHistory } from './checker.ts';
import type { Effect, HistoryEntry, TaskSeen } from './history.ts';
import { createRecorder } from './recorder.ts';
import { createScriptedModel } from './scripted-model.ts';
import { createVirtualWorld } from './virtual-world.ts';

type Entry<Seen> = Extract<HistoryEntry, { seen: Seen }>;
type EventEntry<Type> = { readonly seen: 'event'; readonly event: Extract<Entry<'event'>['event'], { type: Type }> };

const plain = { description: '', inputSchema: z.unknown(), effects: 'read' as const };

/** A run that writes text, calls three tools and is stopped in the second turn with undo. */
async function recordRun(): Promise<HistoryEntry[]> {
  const world = createVirtualWorld();
  const recorder = createRecorder();
  const tools: Tool[] = [
    defineTool({ ...plain, name: 'look', execute: () => 'seen', undo: () => {} }),
    defineTool({ ...plain, name: 'pay', whenCancelled: 'finish', timeoutMs: 1_000, execute: () => 'paid' }),
    defineTool({
      ...plain,
      name: 'wait',
      execute: (_input, { signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
    }),
  ];
  const agent = createAgent({
    name: 'assistant',
    world,
    hooks: recorder.hooks,
    tools: tools.map((tool) => recorder.tool(tool)),
    model: createScriptedModel([
      ['I look. ', { call: 'look', id: 'l' }, { call: 'pay', id: 'p' }],
      ['I wait. ', { call: 'wait', id: 'w' }],
    ]),
  });
  const root = new CancellationToken({ name: 'root', clock: world.clock });
  const run = recorder.run(agent.run('go', { token: root }));
  for await (const event of run.events) if (event.type === 'call-start' && event.callId === 'w') break;
  run.cancel({ message: 'enough' }, { mode: 'now', undo: true });
  await run.outcome;
  run.cancel();
  recorder.recordToken(root);
  return [...recorder.history];
}

const history = await recordRun();
const reason = { kind: 'user', message: 'enough', at: 5 };
const other = { kind: 'user', message: 'another', at: 6 };
const task = (more: Partial<TaskSeen> = {}): Entry<'task'> => ({
  seen: 'task',
  task: { id: 't', status: 'running', epoch: 1, ...more },
});
const cancelled = task({ status: 'cancelled', stop: { reason }, outcome: { reason } });
const accepted: HistoryEntry = { seen: 'task-receipt', id: 't', receipt: { result: 'accepted', reason } };
const did = (callId: string, phase: Effect['phase']): HistoryEntry => ({ seen: 'effect', callId, tool: 'look', phase });
const journal = (...events: { type: string }[]): Entry<'journal'> => ({
  seen: 'journal',
  id: 't',
  entries: events.map((event, index) => ({ position: index + 1, epoch: 1, event })),
});
const started = { type: 'call-start', callId: 'l' };
const ended = (state: string) => ({ type: 'call-end', result: { callId: 'l', tool: 'look', state } });
/** A task that began, was cancelled and ended. */
const life: readonly HistoryEntry[] = [
  task({ status: 'init', epoch: 0 }),
  task(),
  did('l', 'begin'),
  did('l', 'resolve'),
  journal(started),
  accepted,
  task({ status: 'cancelling', stop: { reason } }),
  cancelled,
  journal(started, ended('finished')),
  cancelled,
];

const isEvent =
  <Type extends string>(type: Type) =>
  (entry: HistoryEntry): entry is EventEntry<Type> & HistoryEntry =>
    entry.seen === 'event' && entry.event.type === type;
/** The same history without some entries. */
const without = (drop: (entry: HistoryEntry) => boolean) => history.filter((entry) => !drop(entry));
/** The same history with the first entry of an event changed, or with more put before or after it. */
function around<Type extends string>(
  type: Type,
  make: (entry: EventEntry<Type> & HistoryEntry) => readonly HistoryEntry[],
): HistoryEntry[] {
  const at = history.findIndex(isEvent(type));
  return history.toSpliced(at, 1, ...make(history[at] as EventEntry<Type> & HistoryEntry));
}
/** The same history with another outcome, where it was announced and where it was given. */
const withOutcome = (change: (outcome: Outcome) => object): HistoryEntry[] =>
  history.map((entry) => {
    if (entry.seen === 'outcome') return { ...entry, outcome: change(structuredClone(entry.outcome)) as Outcome };
    if (!isEvent('run-end')(entry)) return entry;
    return { ...entry, event: { ...entry.event, outcome: change(structuredClone(entry.event.outcome)) as Outcome } };
  });
const withMessages = (change: (messages: readonly Message[]) => readonly Message[]): HistoryEntry[] =>
  withOutcome((outcome) => ({ ...outcome, messages: change(outcome.messages) }));
const id = history.find(isEvent('run-start'))!.event.runId;
const end = history.find(isEvent('run-end'))!;
const late: HistoryEntry = { seen: 'effect', callId: 'l', tool: 'look', phase: 'resolve' };
const createReceipt = (result: 'accepted' | 'too-late') => {
  const { receipt } = history.find((entry) => entry.seen === 'receipt')!;
  return { seen: 'receipt' as const, runId: id, receipt: result === 'accepted' ? receipt : { result } };
};

test('a good history of a run and of a task breaks nothing', () => {
  expect(checkHistory(history)).toEqual([]);
  expect(checkHistory(life)).toEqual([]);
});

const planted: readonly [what: string, promise: string, history: readonly HistoryEntry[]][] = [
  ['a run that ends twice', 'P1', around('run-end', (entry) => [entry, entry])],
  ['a run that never ends', 'P1', [{ seen: 'event', event: history.find(isEvent('run-start'))!.event }]],
  [
    'an outcome that is not the one announced',
    'P1',
    [...history, { seen: 'outcome', runId: id, outcome: { ...end.event.outcome, text: 'changed' } }],
  ],
  ['a record that changes after its end', 'P1', [...life, { ...cancelled, task: { ...cancelled.task, epoch: 2 } }]],
  ['a task that never ends', 'P1', life.slice(0, 2)],
  ['a cancelled run that never ends', 'P2', without((entry) => entry.seen === 'outcome' || isEvent('run-end')(entry))],
  ['a cancelled task that never ends', 'P2', life.slice(0, 7)],
  [
    'a run that ends past its bound',
    'P2',
    withOutcome((outcome) => ({ ...outcome, endedAt: outcome.endedAt + 60_000 })),
  ],
  ['a cancel accepted twice', 'P3', around('run-end', (entry) => [createReceipt('accepted'), entry])],
  ['a cancel accepted after the end', 'P3', [...history, createReceipt('accepted')]],
  ['too late before the end', 'P3', [createReceipt('too-late'), ...history]],
  ['a level that goes down', 'P3', around('level-changed', (entry) => [entry, entry])],
  [
    'a success after an accepted cancel',
    'P3',
    withOutcome(({ status, ...outcome }) => ({ ...outcome, status: status && 'success' })),
  ],
  ['a task that succeeds after an accepted cancel', 'P3', [accepted, task({ status: 'success' })]],
  ['a task that is sealed and fails', 'P3', [task({ status: 'cancelling' }), task({ status: 'failed' })]],
  [
    'too late with another status than the end',
    'P3',
    [...life, { seen: 'task-receipt', id: 't', receipt: { result: 'too-late', status: 'success' } }],
  ],
  ['an event after the end', 'P4', [...history, history.find(isEvent('text'))!]],
  [
    'a call that starts after the cancel',
    'P4',
    around('level-changed', (entry) => [entry, history.find(isEvent('call-start'))!]),
  ],
  ['a tool that continues after the end without a report', 'P4', [...history, late]],
  ['a tool of a task that runs on after its end', 'P4', [...life, did('l', 'begin')]],
  [
    'words that were shown and are lost',
    'P5',
    withMessages((messages) => messages.filter((message) => !isSaid(message, 'I wait. '))),
  ],
  ['words that were shown twice', 'P5', around('text', (entry) => [entry, entry])],
  ['a call that ended and is lost', 'P5', withOutcome((outcome) => ({ ...outcome, calls: outcome.calls.slice(1) }))],
  ['a journal that forgets', 'P5', [...life, journal(ended('finished'))]],
  [
    'a journal out of order',
    'P5',
    [
      ...life.slice(0, 8),
      {
        ...journal(),
        entries: [
          { position: 2, epoch: 1, event: started },
          { position: 1, epoch: 1, event: started },
        ],
      },
    ],
  ],
  [
    'a draft that is gone though nothing holds its words',
    'P5',
    [...life.slice(0, 8), journal({ type: 'text', text: 'lost' } as { type: string }), journal(started)],
  ],
  ['a call without a result', 'P6', withMessages((messages) => messages.filter(({ role }) => role !== 'tool'))],
  [
    'a result without a call',
    'P6',
    withMessages((messages) =>
      messages.filter((message) => !isSaid(message, 'I look. ') && !isSaid(message, 'I wait. ')),
    ),
  ],
  [
    'a finished call that never began',
    'P6',
    without((entry) => entry.seen === 'effect' && entry.callId === 'l' && entry.phase === 'begin'),
  ],
  [
    'a finished call that did not finish',
    'P6',
    without((entry) => entry.seen === 'effect' && entry.callId === 'p' && entry.phase === 'resolve'),
  ],
  [
    'a call that is said not to have started, and did',
    'P6',
    [...life.slice(0, 8), journal(started, ended('not-started'))],
  ],
  ['another reason in the outcome', 'P7', withOutcome((outcome) => ({ ...outcome, reason: other }))],
  ['another reason in a record', 'P7', [accepted, task({ status: 'cancelled', outcome: { reason: other } })]],
  ['a run that is stopped without a cancel', 'P8', without(isEvent('level-changed'))],
  [
    'a call that must finish and is cut',
    'P9',
    around('wave-end', (entry) => [entry, { seen: 'effect', callId: 'p', tool: 'pay', phase: 'cut' }]),
  ],
  ['an undo that begins twice', 'P9', [...history, { seen: 'effect', callId: 'l', tool: 'look', phase: 'undo-begin' }]],
  [
    'an undo of what had not completed',
    'P9',
    [...history, { seen: 'effect', callId: 'w', tool: 'wait', phase: 'undo-begin' }],
  ],
  [
    'an undo that is claimed and did not happen',
    'P9',
    without((entry) => entry.seen === 'effect' && entry.phase === 'undo-resolve'),
  ],
  ['a call that ends twice', 'P10', around('call-end', (entry) => [entry, entry])],
  [
    'a late result of a call that was not abandoned',
    'P10',
    [
      ...history,
      {
        seen: 'event',
        event: {
          type: 'call-ended-late',
          callId: 'l',
          tool: 'look',
          runId: id,
          at: 0,
          late: { state: 'finished', value: 1, at: 0 },
        },
      },
    ],
  ],
  [
    'a write of an old epoch that is taken',
    'P10',
    [task({ epoch: 2 }), { seen: 'write', id: 't', epoch: 1, accepted: true }],
  ],
  ['a write after the end that is taken', 'P10', [...life, { seen: 'write', id: 't', epoch: 1, accepted: true }]],
  ['an epoch that goes back', 'P10', [task({ epoch: 2 }), task({ epoch: 1 })]],
  [
    'a journal that an old epoch wrote into',
    'P10',
    [
      ...life.slice(0, 8),
      {
        ...journal(),
        entries: [
          { position: 1, epoch: 2, event: started },
          { position: 2, epoch: 1, event: started },
        ],
      },
    ],
  ],
  ['a listener that stays', 'P11', [...history, { seen: 'leftovers', name: 'root', children: 0, listeners: 1 }]],
  ['a process that stays', 'P11', [...history, { seen: 'left', where: 'bash', things: ['process 7 (sleep)'] }]],
  ['a stranger who can tell', 'P12', [{ seen: 'stranger', asked: 'get', answer: { id: 't' }, forMissing: undefined }]],
];

function isSaid(message: Message, words: string): boolean {
  return message.role === 'assistant' && JSON.stringify(message.content).includes(words);
}

test.each(planted)('%s is found, and breaks %s', (_what, promise, bad) => {
  expect(checkHistory(bad).map((violation) => violation.promise)).toContain(promise);
});

test('every promise has been broken at least once', () => {
  const broken = new Set(planted.map(([, promise]) => promise));
  expect([...broken].toSorted()).toEqual(Array.from({ length: 12 }, (_, i) => `P${i + 1}`).toSorted());
});

test('another tenant gets the same result for an existing task as for a missing one', () => {
  expect(checkHistory([{ seen: 'stranger', asked: 'get', answer: undefined, forMissing: undefined }])).toEqual([]);
});

test('a run whose error is its own cause, or whose input cannot be copied, is recorded like any other', async () => {
  const recorder = createRecorder();
  const error = new Error('again');
  error.cause = error;
  const planner = {
    next: (): never => {
      throw error;
    },
  };
  await recorder.run(createAgent({ name: 'a', planner, hooks: recorder.hooks }).run('x')).outcome;
  const input = z.unknown().transform(() => ({ run: () => 'x' }));
  const tool = defineTool({
    ...plain,
    name: 'look',
    inputSchema: input,
    inputJsonSchema: { type: 'object' },
    execute: () => 'seen',
  });
  const model = createScriptedModel([[{ call: 'look' }], ['done']]);
  const agent = createAgent({ name: 'b', model, tools: [tool as Tool], hooks: recorder.hooks });
  await recorder.run(agent.run('x')).outcome;
  expect(recorder.history.filter((entry) => entry.seen === 'event' && entry.event.type === 'call-start')).toHaveLength(
    1,
  );
  expect(checkHistory(recorder.history)).toEqual([]);
});

test('a run that its parent cancelled has no receipt, and may last as long as the ladder', async () => {
  const world = createVirtualWorld();
  const recorder = createRecorder();
  const after = (ms: number) => () =>
    new Promise<string>((resolve) => void world.clock.setTimer(ms, () => resolve('x')));
  const tools = [
    defineTool({ ...plain, name: 'pay', whenCancelled: 'finish', timeoutMs: 1_000, execute: after(500) }),
    defineTool({ ...plain, name: 'slow', execute: after(9_000) }),
  ];
  const model = createScriptedModel([[{ call: 'pay' }, { call: 'slow' }]], { clock: world.clock });
  const agent = createAgent({
    name: 'a',
    world,
    hooks: recorder.hooks,
    tools: tools.map((one) => recorder.tool(one)),
    model,
  });
  using root = new CancellationToken({ clock: world.clock });
  const run = recorder.run(agent.run('go', { token: root }));
  await world.clock.advance(10);
  root.cancel();
  await world.clock.advance(9_000);
  expect(await run.outcome).toMatchObject({
    status: 'cancelled',
    calls: [{ state: 'finished' }, { state: 'finished' }],
  });
  expect(checkHistory(recorder.history)).toEqual([]);
  // It had to be over soon after `kill`.
  const late = recorder.history.map((entry) => {
    const isEarly = entry.seen === 'event' && entry.event.type === 'level-changed';
    return isEarly ? { ...entry, event: { ...entry.event, level: 'kill' as const } } : entry;
  });
  expect(checkHistory(late as HistoryEntry[])).toEqual([
    { promise: 'P2', what: expect.stringMatching(/: it settled \d+ ms past its bound$/) as string },
  ]);
});
