// A cancel at every moment of a run, at every level, on three wire formats: the text is kept, and the next turn is
// accepted by a provider that rejects what the vendors reject.
import {
  findRefusals,
  type LoopbackProvider,
  type ScriptedResponse,
  startLoopbackProvider,
  type WireFormat,
} from '@whoa/ai-sdk/testing';
import {
  createAgent,
  defineTool,
  type Outcome,
  type Run,
  type RunEvent,
  type StopLevel,
  type StopMode,
} from '@whoa/core';
import { prepareMessages } from '@whoa/core/model';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { formats, loopbackModel } from '../ai-sdk/providers.ts';

const levels: Record<StopLevel, StopMode> = {
  drain: { drainMs: 100, abortMs: 100 },
  abort: { abortMs: 100 },
  kill: 'kill',
};

interface CancelPoint {
  readonly name: string;
  readonly answers: readonly ScriptedResponse[];
  /** Resolves at the moment for the cancel. */
  readonly comes: (journey: Journey) => Promise<unknown>;
  /** The words of the cut reply. */
  readonly text: string;
  readonly after?: 'end' | 'twice';
  /** Formats that cannot have this moment, and why. */
  readonly not?: Partial<Record<WireFormat, string>>;
}

interface Journey {
  readonly provider: LoopbackProvider;
  readonly run: Run;
  readonly waitFor: (type: RunEvent['type'], matches?: (event: RunEvent) => boolean) => Promise<RunEvent>;
}

const calls: ScriptedResponse = {
  parts: [{ text: 'I will look. ' }, { call: 'look', id: 'c1' }, { call: 'wait', id: 'c2' }],
};
const look: ScriptedResponse = { parts: [{ text: 'I will look. ' }, { call: 'look', id: 'c1' }] };
const isText = (event: RunEvent): boolean => event.type === 'text' && event.text.includes('there');

const moments: readonly CancelPoint[] = [
  {
    name: 'before the first byte',
    answers: [{ beforeHeaders: { stall: true } }],
    comes: ({ provider }) => provider.waitForRequest(0),
    text: '',
  },
  {
    name: 'mid-text',
    answers: [{ parts: [{ text: ['Hello ', 'there', { stall: true }, ' you'] }] }],
    comes: ({ waitFor }) => waitFor('text', isText),
    text: 'Hello there',
  },
  {
    name: 'mid-thinking',
    answers: [{ parts: [{ thinking: ['Let me ', 'think', { stall: true }] }, { text: 'never said' }] }],
    comes: ({ waitFor }) => waitFor('thinking'),
    text: '',
    not: { chat: 'this format streams no thinking' },
  },
  {
    name: 'mid-arguments',
    answers: [{ parts: [{ text: 'I look. ' }, { call: 'look', id: 'c1', arguments: ['{"q": "ro', { stall: true }] }] }],
    comes: ({ waitFor }) => waitFor('call-planned'),
    text: 'I look. ',
  },
  {
    name: 'with an approval pending',
    answers: [{ parts: [{ text: 'I write. ' }, { call: 'write', id: 'c1' }] }],
    comes: ({ waitFor }) => waitFor('approval-requested'),
    text: 'I write. ',
  },
  {
    name: 'between calls',
    answers: [calls],
    comes: ({ waitFor }) => waitFor('call-end'),
    text: 'I will look. ',
  },
  {
    name: 'in wave 1',
    answers: [calls],
    comes: ({ waitFor }) => waitFor('call-start', (event) => event.type === 'call-start' && event.tool === 'wait'),
    text: 'I will look. ',
  },
  {
    name: 'between waves',
    answers: [look, { beforeHeaders: { stall: true } }],
    comes: ({ waitFor }) => waitFor('wave-end'),
    text: 'I will look. ',
  },
  {
    name: 'in the next turn',
    answers: [look, { parts: [{ text: ['Now ', 'there', { stall: true }] }] }],
    comes: ({ waitFor }) => waitFor('text', isText),
    text: 'Now there',
  },
  {
    name: 'during the back-off before a retry',
    answers: [{ status: 529, message: 'overloaded', headers: { 'retry-after': '30' } }],
    comes: ({ waitFor }) => waitFor('turn-retry'),
    text: '',
  },
  {
    name: 'after the end',
    answers: [{ parts: [{ text: 'Done.' }] }],
    comes: ({ run }) => run.outcome,
    text: 'Done.',
    after: 'end',
  },
  {
    name: 'twice in one tick',
    answers: [{ parts: [{ text: ['Hello ', 'there', { stall: true }] }] }],
    comes: ({ waitFor }) => waitFor('text', isText),
    text: 'Hello there',
    after: 'twice',
  },
];

function createTestAgent(format: WireFormat, url: string) {
  const plain = { description: 'A tool.', inputSchema: z.object({ q: z.string().optional() }) };
  return createAgent({
    name: 'assistant',
    model: loopbackModel(format, url),
    concurrency: 1,
    approve: () => new Promise(() => {}),
    tools: [
      defineTool({
        ...plain,
        name: 'look',
        effects: 'read',
        execute: () => ({ content: 'found', details: { secret: true } }),
      }),
      defineTool({
        ...plain,
        name: 'wait',
        effects: 'read',
        execute: (_input, { signal }) =>
          new Promise((_, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
          ),
      }),
      defineTool({ ...plain, name: 'write', effects: 'write', execute: () => expect.fail('nobody said yes') }),
    ],
  });
}

async function waitForEvent(run: Run, matches: (event: RunEvent) => boolean): Promise<RunEvent> {
  for await (const event of run.events) if (matches(event)) return event;
  return expect.fail('it ended before that happened');
}

function expectStopped(outcome: Outcome, moment: CancelPoint): void {
  expect(outcome.text).toBe(moment.text);
  if (moment.after === 'end') expect(outcome.status).toBe('success');
  else expect(outcome).toMatchObject({ status: 'cancelled', reason: { kind: 'user', message: 'first' } });
}

/** The errors that the three vendors would report for the next request. */
const refusals = ({ messages }: Outcome) =>
  findRefusals(prepareMessages([...messages, { role: 'user', content: 'and now?' }]));

const table = formats.flatMap((format) =>
  moments
    .filter(({ not }) => not?.[format] === undefined)
    .flatMap((moment) =>
      (Object.keys(levels) as StopLevel[]).map((level) => ({ format, moment, level, name: moment.name })),
    ),
);

test.each(table)(
  '$format: a cancel $name at $level keeps the text, and the next turn is accepted',
  async ({ format, moment, level }) => {
    const answers = [...moment.answers];
    const provider = await startLoopbackProvider({
      script: () => answers.shift() ?? { parts: [{ text: 'Here I am again.' }] },
    });
    try {
      const agent = createTestAgent(format, provider.url);
      const run = agent.run('hello');
      const waitFor: Journey['waitFor'] = (type, matches = () => true) =>
        waitForEvent(run, (event) => event.type === type && matches(event));
      await moment.comes({ provider, run, waitFor });
      const receipt = run.cancel({ kind: 'user', message: 'first' }, { mode: levels[level] });
      expect(receipt.result).toBe(moment.after === 'end' ? 'too-late' : 'accepted');
      if (moment.after === 'twice')
        expect(run.cancel({ message: 'second' }, { mode: levels[level] }).result).toBe('unchanged');
      const outcome = await run.outcome;
      expectStopped(outcome, moment);
      await provider.waitForIdle();
      expect(refusals(outcome)).toEqual([]);
      const asked = provider.requests.length;
      answers.length = 0;
      const next = await agent.run('and now?', { history: outcome.messages }).outcome;
      expect(next).toMatchObject({ status: 'success', text: 'Here I am again.' });
      expect(provider.requests).toHaveLength(asked + 1);
      for (const request of provider.requests) {
        expect(request.refusal).toBeUndefined();
        expect(JSON.stringify(request.body)).not.toContain('secret');
      }
      // The model's text from before the cut is in the next request.
      expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain(JSON.stringify(moment.text.trim()).slice(1, -1));
    } finally {
      await provider.close();
    }
  },
);

test.each(formats)(
  '%s: tools that ignore their signal are abandoned, reported as unknown, and the next turn is accepted',
  async (format) => {
    const provider = await startLoopbackProvider({
      script: [
        {
          parts: [
            { call: 'deaf', id: 'd1' },
            { call: 'never', id: 'd2' },
          ],
        },
        { parts: [{ text: 'I see.' }] },
      ],
    });
    try {
      let finish: (() => void) | undefined;
      const late: RunEvent[] = [];
      const plain = { description: 'Deaf.', inputSchema: z.object({}), effects: 'write' as const };
      const agent = createAgent({
        name: 'assistant',
        model: loopbackModel(format, provider.url),
        tools: [
          defineTool({
            ...plain,
            name: 'deaf',
            execute: () => new Promise((resolve) => (finish = () => resolve('sent after all'))),
          }),
          defineTool({ ...plain, name: 'never', execute: () => new Promise(() => {}) }),
        ],
        hooks: { 'call-ended-late': (event) => late.push(event) },
      });
      const run = agent.run('send it');
      await waitForEvent(run, (event) => event.type === 'call-start' && event.tool === 'never');
      const cancelledAt = performance.now();
      run.cancel({ kind: 'user' }, { mode: { drainMs: 50, abortMs: 50 } });
      const outcome = await run.outcome;
      expect(performance.now() - cancelledAt).toBeGreaterThanOrEqual(99);
      expect(outcome.calls.map(({ state }) => state)).toEqual(['unknown', 'unknown']);
      const before = JSON.stringify(outcome);
      finish?.();
      await new Promise((resolve) => setImmediate(resolve));
      expect(JSON.stringify(outcome)).toBe(before);
      expect(late).toMatchObject([{ callId: 'd1', late: { state: 'finished', value: { content: 'sent after all' } } }]);
      expect(
        agent.lateResults
          .entries()
          .map(({ name, late: end }) => [name, end?.state])
          .toSorted((a, b) => String(a[0]).localeCompare(String(b[0]))),
      ).toEqual([
        ['deaf', 'finished'],
        ['never', undefined],
      ]);
      expect(refusals(outcome)).toEqual([]);
      expect(await agent.run('did it work?', { history: outcome.messages }).outcome).toMatchObject({
        status: 'success',
        text: 'I see.',
      });
      expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain('Outcome unknown');
    } finally {
      await provider.close();
    }
  },
);
