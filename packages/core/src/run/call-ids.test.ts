import { expect, test } from 'vitest';
import { z } from 'zod';
import { checkHistory } from '../testing/checker.ts';
import { createRecorder } from '../testing/recorder.ts';
import { scriptedModel } from '../testing/scripted-model.ts';
import { createVirtualWorld } from '../testing/virtual-world.ts';
import { defineTool, type Tool } from '../tool/tool.ts';
import { createAgent } from './agent.ts';
import { CallIds } from './call-ids.ts';
import type { ModelPart } from './model.ts';

const result = (callId: string) => ({ role: 'tool' as const, callId, tool: 't', content: '', isError: false });
const start = (callId: string): ModelPart => ({ type: 'call-start', callId, tool: 't' });
const end = (callId: string): ModelPart => ({ type: 'call-end', callId, tool: 't', input: {} });
const idOf = (part: ModelPart): string | undefined => ('callId' in part ? part.callId : undefined);

test('an id that is free stays, one that is taken gets a number, and all parts of a call agree', () => {
  const ids = new CallIds([result('a'), result('b'), result('b-2')]);
  const parts: ModelPart[] = [
    start('c'),
    end('c'),
    start('a'),
    { type: 'call-arguments', callId: 'a', text: '' },
    end('a'),
    end('b'),
  ];
  expect(parts.map((part) => idOf(ids.own(part)))).toEqual(['c', 'c', 'a-2', 'a-2', 'a-2', 'b-3']);
  const words: ModelPart = { type: 'text', text: 'as it is' };
  expect(ids.own(words)).toBe(words);
});

test('two calls of one reply under one id are two calls', () => {
  const ids = new CallIds([]);
  expect([start('x'), end('x'), start('x'), end('x')].map((part) => idOf(ids.own(part)))).toEqual([
    'x',
    'x',
    'x-2',
    'x-2',
  ]);
  expect([start('y'), start('y'), end('y'), end('y')].map((part) => idOf(ids.own(part)))).toEqual([
    'y',
    'y-2',
    'y-2',
    'y-3',
  ]);
});

test('a provider that counts its calls anew in every reply gets each result for its own call, and each is undone for itself', async () => {
  const world = createVirtualWorld();
  const recorder = createRecorder();
  const undone: string[] = [];
  const book = defineTool<{ day: string }>({
    name: 'book',
    description: 'Books.',
    input: z.object({ day: z.string() }),
    effects: 'write',
    execute: ({ day }) => `booked ${day}`,
    undo: ({ input }) => {
      undone.push(input.day);
    },
  });
  const stuck = new Promise<never>(() => {});
  const call = (day: string) => ({ call: 'book', id: 'call_0', input: { day } });
  const model = scriptedModel([[call('Monday')], [call('Tuesday')], ['Booked. ', { until: stuck }]], {
    clock: world.clock,
  });
  const agent = createAgent({ name: 'a', model, world, hooks: recorder.hooks, tools: [recorder.tool(book as Tool)] });
  const run = recorder.run(agent.run('go'));
  for await (const event of run.events) if (event.type === 'text') break;
  run.cancel({}, { how: 'now', undo: true });
  const { calls } = await run.outcome;
  expect(calls.map(({ callId, content }) => [callId, content])).toEqual([
    ['call_0', 'booked Monday'],
    ['call_0-2', 'booked Tuesday'],
  ]);
  expect(undone).toEqual(['Tuesday', 'Monday']);
  const told = model.requests[2]!.messages.flatMap((message) => (message.role === 'tool' ? [message.content] : []));
  expect(told).toEqual(['booked Monday', 'booked Tuesday']);
  expect(checkHistory(recorder.history, { undoMs: 30_000 })).toEqual([]);
});
