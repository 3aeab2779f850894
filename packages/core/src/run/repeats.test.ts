import { expect, test } from 'vitest';
import { createScriptedModel } from '../testing/index.ts';
import type { Tool } from '../tool/tool.ts';
import { defineTool } from '../tool/tool.ts';
import { createAgent } from './agent.ts';
import type { Message } from './history/message.ts';
import { Repeats } from './repeats.ts';
import type { Outcome } from './report/outcome.ts';

const anything = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const;
const again = { call: 'look', input: { at: 'door' } } as const;

interface Setup {
  readonly look?: (() => string) | undefined;
  readonly repeats?: number;
  readonly tool?: Partial<Tool>;
}

async function run(
  replies: Parameters<typeof createScriptedModel>[0],
  { look = () => 'closed', repeats = 3, tool }: Setup = {},
) {
  let ran = 0;
  const definition = {
    name: 'look',
    description: 'Looks.',
    inputSchema: anything,
    inputJsonSchema: {},
    effects: 'read' as const,
    execute: () => {
      ran++;
      return look();
    },
  };
  const tools = [
    defineTool({ ...definition, repeats: tool?.repeats }),
    defineTool({ ...definition, name: 'walk', execute: () => 'walked' }),
  ];
  const model = createScriptedModel(replies);
  const agent = createAgent({ name: 'watcher', model, tools, budgets: { repeats, maxTurns: 30 } });
  return { outcome: await agent.run('Is it open?').outcome, ran, turns: model.requests.length };
}

const states = ({ calls }: Outcome): string => calls.map(({ state }) => state[0]).join('');
const why = (outcome: Outcome): string | undefined =>
  outcome.status === 'cancelled' ? `${outcome.reason.kind}: ${outcome.reason.message}` : outcome.status;

test('a call that is made again and again is told at the 4th and ends the run at the 6th', async () => {
  const { outcome, ran, turns } = await run([[again]]);
  expect([states(outcome), ran, turns]).toEqual(['fffnnn', 3, 6]);
  expect(outcome.calls[3]!.content).toBe(
    'Not started: the same call was made 3 times with the same result; make a different call, or answer with what you have',
  );
  expect(why(outcome)).toBe('budget: the run reached its repeats of 3: it made the same call again and again');
});

test('without the limit nothing is counted', async () => {
  const model = createScriptedModel([[{ call: 'none', input: {} }]]);
  const agent = createAgent({ name: 'watcher', model, budgets: { maxTurns: 9 } });
  expect((await agent.run('go').outcome).calls).toHaveLength(9);
});

test('fields in another order are the same call, and another input is not', async () => {
  const same = [{ call: 'look', input: { a: 1, b: { c: 2, d: 3 } } }] as const;
  const turned = [{ call: 'look', input: { b: { d: 3, c: 2 }, a: 1 } }] as const;
  expect(states((await run([same, turned, same, turned, ['done']])).outcome)).toBe('fffn');
  expect(states((await run([same, same, same, [again], same, ['done']])).outcome)).toBe('fffff');
});

test('a result that differs starts the count again', async () => {
  let looks = 0;
  const { outcome } = await run([[again]], { look: () => (++looks === 3 ? 'open' : 'closed') });
  expect(states(outcome)).toBe('ffffffnnn');
});

test('a polling tool is left alone', async () => {
  const { outcome, ran } = await run([[again]], { tool: { repeats: 'allowed' } });
  expect([ran, why(outcome)]).toEqual([30, 'budget: the run reached its maxTurns of 30']);
});

test('two calls in turn are not repeats', async () => {
  const { outcome } = await run([[again], [{ call: 'walk', input: {} }], ['end']]);
  expect(states(outcome)).toBe('ff');
  const turns = Array.from({ length: 8 }, (_, at) => (at % 2 ? [again] : [{ call: 'walk', input: {} }]));
  expect(states((await run([...turns, ['end']])).outcome)).toBe('ffffffff');
});

test('in one wave the calls beyond the limit are not started, in the order of the reply', async () => {
  const { outcome, ran, turns } = await run([[again, again, again, again, again]]);
  expect([states(outcome), ran, turns]).toEqual(['fffnnnnnnn', 3, 2]);
});

test('calls of one wave whose results differ count as differing', async () => {
  let looks = 0;
  const { outcome } = await run([[again, again, again, again], ['done']], { look: () => `${++looks}` });
  expect([states(outcome), why(outcome)]).toEqual(['fffn', 'success']);
});

test('a call that was denied counts, and so does one that fails', async () => {
  const denied = createAgent({
    name: 'watcher',
    model: createScriptedModel([[again]]),
    tools: [
      defineTool({
        name: 'look',
        description: 'Looks.',
        inputSchema: anything,
        inputJsonSchema: {},
        execute: () => 'seen',
      }),
    ],
    approve: () => false,
    budgets: { repeats: 2 },
  });
  expect(why(await denied.run('go').outcome)).toMatch(/^budget: the run reached its repeats of 2/);
  const fails = (): string => {
    throw new Error('no door');
  };
  expect(states((await run([[again]], { look: fails })).outcome)).toBe('fffnnn');
});

test('a message from the user starts the count again', async () => {
  let sent = 0;
  const agent = createAgent({
    name: 'watcher',
    model: createScriptedModel([[again]]),
    tools: [
      defineTool({
        name: 'look',
        description: '',
        inputSchema: anything,
        inputJsonSchema: {},
        effects: 'read',
        execute: () => 'closed',
      }),
    ],
    budgets: { repeats: 3 },
    hooks: { 'turn-start': ({ turn }) => void (turn === 6 && ++sent && looking.steer('Look once more')) },
  });
  const looking = agent.run('go');
  const outcome = await looking.outcome;
  expect([sent, states(outcome)]).toEqual([1, 'fffnnnfffnnn']);
});

test('a history continues the count, and a notice does not start it again', () => {
  const repeats = new Repeats(2, new Map());
  const call = (id: string): Message => ({
    role: 'assistant',
    content: [{ type: 'call', callId: id, tool: 'look', input: {} }],
    stopReason: 'tool-use',
  });
  const result = (callId: string, content: string, state: 'finished' | 'not-started' = 'finished'): Message => {
    return { role: 'tool', callId, tool: 'look', state, content, isError: false, endedAt: 0 };
  };
  const told = repeats.refuse([1, 2, 3].map((id) => ({ id: `${id}`, tool: 'look', input: {} }))).get('3')!;
  repeats.read([
    { role: 'user', content: 'go' },
    call('a'),
    result('a', 'same'),
    call('b'),
    result('b', 'same'),
    { role: 'user', isNotice: true, content: 'The process you ran in was restarted' },
    call('c'),
    result('c', `Not started: ${told}`, 'not-started'),
    call('d'),
    result('d', `Not started: ${told}`, 'not-started'),
  ]);
  expect(repeats.isReached).toBe(false);
  expect([...repeats.refuse([{ id: 'e', tool: 'look', input: {} }]).keys()]).toEqual(['e']);
  repeats.record({ id: 'e', tool: 'look', input: {} }, { state: 'not-started', content: `Not started: ${told}` });
  expect(repeats.isReached).toBe(true);
  repeats.raise(1);
  expect([repeats.isReached, repeats.refuse([{ id: 'f', tool: 'look', input: {} }]).size]).toEqual([false, 0]);
});

test('a call that needs a refused one does not start either', async () => {
  const inputs = { id: 'x', tool: 'look', input: {} };
  let turn = 0;
  let ran = 0;
  const agent = createAgent({
    name: 'watcher',
    planner: {
      next: () => {
        const calls =
          ++turn === 1
            ? [{ ...inputs, id: 'first' }]
            : [
                { ...inputs, id: 'second' },
                { id: 'third', tool: 'walk', input: {}, dependsOn: ['second'] },
              ];
        return {
          message: {
            role: 'assistant',
            content: calls.map(({ id: callId, tool, input }) => ({ type: 'call', callId, tool, input })),
            stopReason: 'tool-use',
          },
          calls,
        };
      },
    },
    tools: ['look', 'walk'].map((name) =>
      defineTool({
        name,
        description: '',
        inputSchema: anything,
        inputJsonSchema: {},
        effects: 'read',
        execute: () => `${++ran}` && 'same',
      }),
    ),
    budgets: { repeats: 1, maxTurns: 2 },
  });
  const outcome = await agent.run('go').outcome;
  expect([ran, outcome.calls.map(({ content }) => content)]).toEqual([
    1,
    [
      'same',
      expect.stringMatching(/^Not started: the same call was made once;/),
      "Not started: it needs 'second', which did not succeed",
    ],
  ]);
});

test('a limit that is not a whole number from 1 is rejected', () => {
  const model = createScriptedModel([['hi']]);
  for (const repeats of [0, -1, 2.5, NaN, '3' as never])
    expect(() => createAgent({ name: 'x', model, budgets: { repeats } })).toThrow(/budgets\.repeats/);
  expect(() =>
    createAgent({
      name: 'x',
      model,
      tools: [
        {
          ...defineTool({ name: 'a', description: '', inputSchema: anything, inputJsonSchema: {}, execute: () => '' }),
          repeats: 'never' as never,
        },
      ],
    }),
  ).toThrow(/repeats/);
});
