import { expect, test } from 'vitest';
import { z } from 'zod';
import { CancelledError } from '../stop/errors.ts';
import { CancellationToken } from '../stop/token/token.ts';
import { createScriptedModel, type ScriptedReply } from '../testing/scripted-model.ts';
import { createVirtualWorld, flushMicrotasks } from '../testing/virtual-world.ts';
import { defineTool, type Tool, type ToolContext, type ToolDefinition } from '../tool/tool.ts';
import { type Agent, createAgent } from './agent.ts';
import { createAgentTool } from './sub-agent.ts';

const never = new Promise<never>(() => {});
const { clock, ...world } = createVirtualWorld();

function agent(name: string, replies: readonly ScriptedReply[], tools: readonly Tool[] = []): Agent {
  return createAgent({ name, model: createScriptedModel(replies, { clock }), tools, world: { ...world, clock } });
}

const ask = (child: Agent): Tool => createAgentTool(child, { description: `Asks ${child.name}.` }) as Tool;

function tool(name: string, rest: Partial<ToolDefinition<unknown>> = {}): Tool {
  return defineTool({
    name,
    description: name,
    inputSchema: z.unknown(),
    effects: 'write',
    execute: () => `${name} done`,
    ...rest,
  } as ToolDefinition<unknown>);
}

/** Starts an agent that asks another for one thing. */
function start(child: Agent, input: unknown = { task: 'x' }) {
  return agent('lead', [[{ call: child.name, input, id: 'c' }], ['ok']], [ask(child)]).run('go');
}

const readResult = async (run: ReturnType<typeof start>) => (await run.outcome).calls[0]!;

test('the schema for the parent’s model has the task as a string, and nothing else', () => {
  expect(ask(agent('child', []))).toMatchObject({
    name: 'child',
    description: 'Asks child.',
    inputJsonSchema: {
      type: 'object',
      properties: { task: { type: 'string', description: expect.stringMatching(/./) as string } },
      required: ['task'],
      additionalProperties: false,
    },
  });
});

test.each([null, undefined, 'text', 7, { task: 7 }])('%o is not a valid task', async (input) => {
  const checked = await ask(agent('child', [])).inputSchema['~standard'].validate(input);
  expect(checked.issues).toEqual([{ message: 'expected a string', path: ['task'] }]);
});

test('an agent without text has no answer', async () => {
  expect(await readResult(start(agent('child', [[]])))).toMatchObject({ state: 'finished', content: '(no answer)' });
});

test('an answer stands alone, and what took effect for it is in the details', async () => {
  const child = agent(
    'child',
    [[{ call: 'look' }, { call: 'write' }, { call: 'broken' }, { call: 'invented' }], ['Done.']],
    [
      tool('look', { effects: 'read' }),
      tool('write', { execute: () => 'w'.repeat(301) }),
      tool('broken', { execute: () => Promise.reject(new Error('no')) }),
    ],
  );
  const { content, details } = await readResult(start(child));
  expect(content).toBe('Done.');
  expect(details).toMatchObject({
    status: 'success',
    effects: [{ tool: 'write', state: 'finished', content: 'w'.repeat(300) }],
  });
  expect(details).not.toHaveProperty('reason');
});

test('a call that was cut off may have taken effect, and is listed after the last reply', async () => {
  const child = agent(
    'child',
    [
      ['I look. ', { call: 'look' }],
      [{ call: 'obedient' }, { call: 'deaf' }],
    ],
    [
      tool('look', { effects: 'read' }),
      tool('deaf', { execute: () => never }),
      tool('obedient', {
        execute: (_, { signal }) =>
          new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
      }),
    ],
  );
  const run = start(child);
  await flushMicrotasks();
  run.cancel('enough', { mode: 'now' });
  await clock.advance(2_000);
  const { content, details } = await readResult(run);
  expect(content).toContain(
    'I look. \n\nFinished calls: 1 (look).\n\nWhat it did before that:\n- obedient (interrupted): ',
  );
  expect(content).toContain('\n- deaf (unknown): ');
  expect(details).toMatchObject({ effects: [{ state: 'interrupted' }, { state: 'unknown' }] });
});

test('effects that an agent undid itself are not reported as effects', async () => {
  const child = agent(
    'child',
    [[{ call: 'book' }, { call: 'pay' }], [{ until: never }]],
    [tool('book', { undo: () => {} }), tool('pay')],
  );
  const run = start(child);
  await flushMicrotasks();
  run.cancelCall('c', 'not this', { mode: 'now', undo: true });
  expect((await readResult(run)).details).toMatchObject({
    status: 'cancelled',
    effects: [{ tool: 'pay', state: 'finished' }],
  });
});

test('an agent’s tool returns all it knows to its caller, even outside a run', async () => {
  using token = new CancellationToken({ clock });
  const context = { token, signal: token.signal, nest: () => {}, callId: 'c' } as unknown as ToolContext;
  const broken = new Error('no model');
  await expect(ask(agent('child', [[{ fail: broken }]])).execute({ task: 'x' }, context)).rejects.toMatchObject({
    name: 'AgentFailedError',
    cause: { message: 'no model' },
    partial: { details: { status: 'failed' } },
  });
  expect(await ask(agent('child', [['Fine.']])).execute({ task: 'x' }, context)).toMatchObject({ content: 'Fine.' });
});

test('a planner that reports a cancel that did not happen has failed', async () => {
  const error = new CancelledError({ kind: 'user', at: 0 });
  const lead = createAgent({ name: 'lead', planner: { next: () => Promise.reject(error) } });
  expect(await lead.run('go').outcome).toMatchObject({ status: 'failed', error });
});

test('a run’s redaction also applies to the results of its sub-agents', async () => {
  const secretive = agent('child', [[{ call: 'key' }], ['ok']], [tool('key', { execute: () => 'the key is s3cret' })]);
  const lead = agent(
    'lead',
    [[{ call: 'child', input: { task: 'x' } }, { call: 'key' }], ['ok']],
    [ask(secretive), tool('key', { execute: () => 's3cret' })],
  );
  const told: unknown[] = [];
  const run = lead.run('go', {
    redact: (text) => ({ text: text.replaceAll('s3cret', '***'), count: text.split('s3cret').length - 1 }),
    hooks: { any: (event) => told.push(event) },
  });
  expect((await run.outcome).calls).toMatchObject([{}, { content: '***' }]);
  expect(JSON.stringify(told)).toContain('the key is ***');
  expect(JSON.stringify(told)).not.toContain('s3cret');
});
