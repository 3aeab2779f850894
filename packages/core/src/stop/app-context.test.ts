import { expect, test } from 'vitest';
import { createAgent } from '../run/agent.ts';
import { callTools, reply } from '../run/reply/planner.ts';
import { defineTool } from '../tool/tool.ts';
import { type AppContext, contextRule, toContextKey } from './app-context.ts';

test('a context is copied, so that no one can change it for others', () => {
  const given = { user: { name: 'ann' }, gone: undefined };
  const copy = contextRule(given, 'context') as typeof given;
  given.user.name = 'bob';
  expect(copy).toEqual({ user: { name: 'ann' } });
});

test.each<[string, unknown, string]>([
  ['a text', 'ann', 'context: expected plain JSON data, got "ann"'],
  ['a list', [], 'context: expected plain JSON data, got a list'],
  ['nothing', null, 'context: expected plain JSON data, got null'],
  ['a date', { at: new Date() }, 'context: expected plain JSON data, got an object'],
  ['a function', { f: () => 1 }, 'context: expected plain JSON data, got an object'],
  [
    'what throws',
    {
      get user() {
        throw new Error('no');
      },
    },
    'context: it could not be read',
  ],
  ['too much', { text: 'x'.repeat(16_384) }, 'context: expected at most 16384 bytes as JSON, got 16395'],
])('a run refuses %s as its context', (_, context, message) => {
  const agent = createAgent({ name: 'a', planner: { next: () => reply('ok') } });
  expect(() => agent.run('go', { context: context as AppContext })).toThrow(message);
});

test('contexts are equal whatever the order of their fields', () => {
  expect(toContextKey({ b: [{ d: 1, c: 2 }], a: 1 })).toBe(toContextKey({ a: 1, b: [{ c: 2, d: 1 }] }));
  expect(toContextKey({ a: 1 })).not.toBe(toContextKey({ a: '1' }));
  expect(toContextKey(undefined)).not.toBe(toContextKey({}));
});

test('the undo of a call gets the context of its run', async () => {
  const undone: unknown[] = [];
  const book = defineTool<unknown>({
    name: 'book',
    description: 'Books',
    inputSchema: { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } },
    execute: () => 'booked',
    undo: (_, { context }) => void undone.push(context),
  });
  const planner = {
    next: (_: unknown, { turn }: { turn: number }) =>
      turn === 1 ? callTools([{ id: 'c', tool: 'book', input: 1 }]) : reply('ok'),
  };
  const run = createAgent({ name: 'a', planner, tools: [book] }).run('go', { context: { user: 'ann' } });
  await run.outcome;
  await run.undo();
  expect(undone).toEqual([{ user: 'ann' }]);
});
