import { expect, test } from 'vitest';
import { z } from 'zod';
import { createAgent } from '../../run/agent.ts';
import { createAgentTool } from '../../run/sub-agent.ts';
import { createScriptedModel } from '../../testing/scripted-model.ts';
import { createRuntime, type RuntimeOptions } from '../runtime.ts';
import { defineTool, type Tool } from '../tool.ts';

const about = { description: 'Asks', inputSchema: z.object({ question: z.string() }) };
const when = defineTool({ ...about, name: 'when', answeredBy: 'user', answerSchema: z.object({ day: z.number() }) });
const locate = defineTool({ ...about, name: 'locate', answeredBy: 'client' });

const CALL = { id: 'c1', tool: 'when', input: { question: 'Which day?' } };

function setUp(answer?: RuntimeOptions['answer'], options: Partial<RuntimeOptions> = {}) {
  return createRuntime({ tools: [when, locate] as Tool[], ...(answer && { answer }), ...options });
}

test('the answer of a user, checked by its schema, is the result of the call', async () => {
  const asked: unknown[] = [];
  const runtime = setUp(({ call, input, tool }) => {
    asked.push([call.id, tool.name, input]);
    return { day: 3, more: 'is dropped' };
  });
  expect(await runtime.execute([CALL])).toMatchObject([{ state: 'finished', content: '{"day":3}' }]);
  expect(asked).toEqual([['c1', 'when', { question: 'Which day?' }]]);
});

test('an answer that the schema rejects does not start the call, and the model gets the reasons', async () => {
  const [result] = await setUp(() => ({ day: 'soon' })).execute([CALL]);
  expect(result).toMatchObject({ state: 'not-started', isError: true });
  expect(result!.content).toMatch(/the answer does not match its schema: day: .*expected number/);
});

test.each(['when', 'locate'])('without anyone to ask, a call of %s is not started', async (tool) => {
  const [result] = await setUp().execute([{ ...CALL, tool }]);
  expect(result).toMatchObject({
    state: 'not-started',
    content: expect.stringContaining('no one can be asked') as string,
  });
});

test('a question to a user needs no approval, a call in a client does', async () => {
  const runtime = setUp(() => ({ day: 1 }), { approve: () => 'no' });
  const results = await runtime.execute([CALL, { ...CALL, id: 'c2', tool: 'locate' }]);
  expect(results.map(({ state }) => state)).toEqual(['finished', 'not-started']);
});

test.each([
  ['when', 'not-started'],
  ['locate', 'unknown'],
])('a call of %s that is cancelled while it waits is %s', async (tool, state) => {
  for (const mode of ['graceful', 'now', 'kill'] as const) {
    const asked = Promise.withResolvers<void>();
    const agent = createAgent({
      name: 'asks',
      model: createScriptedModel([[{ call: tool, input: CALL.input }]]),
      tools: [when, locate] as Tool[],
      answer: (_request, { signal }) => {
        asked.resolve();
        return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))));
      },
    });
    const run = agent.run('go');
    await asked.promise;
    run.cancel({ kind: 'user' }, { mode });
    const { calls, status } = await run.outcome;
    expect([mode, status, calls.map((one) => one.state)]).toEqual([mode, 'cancelled', [state]]);
    expect(calls[0]!.content).toContain('user');
  }
});

test('stopping one call ends its wait, and the others go on', async () => {
  const runtime = setUp((_request, { signal }) => {
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))));
  });
  const executing = runtime.execute([CALL, { ...CALL, id: 'c2', tool: 'locate' }]);
  await new Promise<void>((resolve) => setImmediate(resolve));
  runtime.cancelCall('c1');
  runtime.cancelCall('c2');
  expect((await executing).map(({ state }) => state)).toEqual(['not-started', 'unknown']);
});

test('an error of a client fails the call; a user who gives no answer leaves it not started', async () => {
  const runtime = setUp(() => Promise.reject(new Error('no GPS')));
  const results = await runtime.execute([CALL, { ...CALL, id: 'c2', tool: 'locate' }]);
  expect(results).toMatchObject([
    { state: 'not-started', content: 'Not started: no GPS' },
    { state: 'failed', content: 'no GPS' },
  ]);
});

test('a sub-agent asks through its parent', async () => {
  const asked: string[] = [];
  const helper = createAgent({
    name: 'helper',
    model: createScriptedModel([[{ call: 'when', input: CALL.input, id: 'in' }], ['Monday']]),
    tools: [when] as Tool[],
  });
  const boss = createAgent({
    name: 'boss',
    model: createScriptedModel([[{ call: 'helper', input: { task: 'ask' }, id: 'out' }], ['ok']]),
    tools: [createAgentTool(helper, { description: 'Helps' }) as Tool],
    answer: ({ call }) => {
      asked.push(call.id);
      return { day: 1 };
    },
  });
  await boss.run('go').outcome;
  expect(asked).toEqual(['out/in']);
});

test('a tool has code or is answered, and a user needs a schema', () => {
  const named = { ...about, name: 'x' };
  expect(() => defineTool(named as never)).toThrow('execute: expected a function');
  expect(() =>
    defineTool({ ...named, answeredBy: 'user', answerSchema: z.string(), execute: () => '' } as never),
  ).toThrow('execute: a tool that a user answers has no code');
  expect(() => defineTool({ ...named, answeredBy: 'user' } as never)).toThrow(
    'answerSchema: expected a Standard Schema',
  );
  expect(() => defineTool({ ...named, answeredBy: 'client', whenCancelled: 'finish', timeoutMs: 1 } as never)).toThrow(
    'whenCancelled',
  );
  expect(createRuntime({ tools: [{ ...when } as Tool] }).tools.get('when')).toMatchObject({ effects: 'read' });
});
