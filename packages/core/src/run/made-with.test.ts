import { expect, test } from 'vitest';
import { z } from 'zod';
import { createConversations } from '../conversation/conversations.ts';
import { SettingsError } from '../stop/settings.ts';
import { CancellationToken } from '../stop/token/token.ts';
import { createScriptedModel } from '../testing/scripted-model.ts';
import { createVirtualWorld } from '../testing/virtual-world.ts';
import { createRuntime } from '../tool/runtime.ts';
import { defineTool, type Tool } from '../tool/tool.ts';
import { type Agent, createAgent } from './agent.ts';
import { createModelPlanner } from './reply/model-planner.ts';
import { reply } from './reply/planner.ts';
import { createAgentTool } from './sub-agent.ts';

const model = createScriptedModel([['hello']]);
const planner = { next: () => reply('hello') };
const look = { name: 'look', description: 'looks', inputSchema: z.object({}), execute: () => 'seen' };

const refusal = (make: () => unknown): string => {
  try {
    make();
  } catch (error) {
    expect(error).toBeInstanceOf(SettingsError);
    expect(error).toMatchObject({ code: 'INVALID_SETTING' });
    return (error as Error).message;
  }
  return 'nothing was refused';
};
const agent = (options: object): string => refusal(() => createAgent({ name: 'a', planner, ...options }));
const tool = (options: object): string => refusal(() => defineTool({ ...look, ...options }));
const run = (options: object, input: unknown = 'x'): string =>
  refusal(() => createAgent({ name: 'a', planner }).run(input as string, options));

const LADDER = "'graceful', 'now', 'kill' or { drainMs, abortMs }";

test('an agent refuses settings that cannot work when it is made, not when they are needed', () => {
  expect(agent({ stopMode: { drainMs: 7_200_000 } })).toBe('stopMode.drainMs: expected 0 to 3600000 ms, got 7200000');
  expect(agent({ stopMode: { drainMs: Infinity } })).toBe('stopMode.drainMs: expected 0 to 3600000 ms, got Infinity');
  expect(agent({ stopMode: { abort: 5 } })).toBe(
    "stopMode.abort: unknown setting; did you mean 'abortMs'? The settings are drainMs, abortMs",
  );
  expect(agent({ stopMode: 'softly' })).toBe(`stopMode: expected ${LADDER}, got "softly"`);
  for (const undoTimeoutMs of [0, 600_001, Number.NaN, -1, '5']) {
    expect(agent({ undoTimeoutMs })).toBe(
      `undoTimeoutMs: expected more than 0 to 600000 ms, got ${typeof undoTimeoutMs === 'string' ? '"5"' : undoTimeoutMs}`,
    );
  }
  expect(agent({ cleanupTimeoutMs: 0 })).toBe('cleanupTimeoutMs: expected more than 0 to 600000 ms, got 0');
  expect(agent({ concurrency: 1.5 })).toBe('concurrency: expected a whole number from 1, got 1.5');
  expect(agent({ budgets: { maxDurationMs: -1 } })).toBe(
    'budgets.maxDurationMs: expected 0 ms or more, or Infinity for never, got -1',
  );
  for (const name of ['maxTurns', 'maxCalls', 'maxModelTokens']) {
    expect(agent({ budgets: { [name]: Number.NaN } })).toBe(
      `budgets.${name}: expected a whole number from 0, or Infinity for no limit, got NaN`,
    );
    expect(agent({ budgets: { [name]: Infinity } })).toBe('nothing was refused');
  }
  expect(agent({ budgets: { turns: 5 } })).toContain('budgets.turns: unknown setting; the settings are maxDurationMs');
  expect(agent({ hooks: { 'call-end': 'x' } })).toBe('hooks.call-end: expected a function, got "x"');
  expect(agent({ world: { createId: () => 'x', random: () => 0 } })).toContain('world.clock: expected a world');
  const brokenClock = { ...createVirtualWorld(), clock: { now: () => Number.NaN, setTimer: () => {} } };
  expect(agent({ world: brokenClock })).toBe('world.clock.now(): expected milliseconds since the epoch, got NaN');
  expect(agent({ budget: {} })).toMatch(/^budget: unknown setting; did you mean 'budgets'/);
  expect(refusal(() => createAgent(undefined as never))).toMatch(/^options: expected an object with .*name/);
  expect(agent({ name: undefined })).toBe('name: expected a non-empty string, got undefined');
});

test('waits of any length are carried, and a limit that never comes', async () => {
  for (const length of [2 ** 31, 60 * 86_400_000, Infinity]) {
    const world = createVirtualWorld();
    const slow = createScriptedModel([['one ', { waitMs: 100 }, 'two']], world);
    const options = { budgets: { maxDurationMs: length }, retry: { idleTimeoutMs: length } };
    const running = createAgent({ name: 'a', model: slow, world, ...options }).run('x');
    await world.clock.advance(200);
    expect(await running.outcome).toMatchObject({ status: 'success', text: 'one two' });
    expect(world.clock.pending).toBe(0);
  }
});

test('how patient a run is with its model is checked', () => {
  const patient = (retry: object): string => agent({ planner: undefined, model, retry });
  expect(patient({ maxAttempts: 0 })).toBe('retry.maxAttempts: expected a whole number from 1, got 0');
  expect(patient({ idleTimeoutMs: Number.NaN })).toBe(
    'retry.idleTimeoutMs: expected 0 ms or more, or Infinity for never, got NaN',
  );
  expect(patient({ backoffMs: Infinity })).toBe('retry.backoffMs: expected 0 ms or more, got Infinity');
});

test('passing an AI SDK model, its name, or no model fails with what to do', () => {
  const asked = (given: unknown): string => agent({ planner: undefined, model: given });
  const advice = 'wrap an AI SDK model: fromAiSdk(model), from @whoa/ai-sdk';
  expect(asked({ specificationVersion: 'v3', doStream: () => {} })).toBe(`model: ${advice}`);
  expect(asked('anthropic/claude')).toBe(`model: the name of a model is not a model; ${advice}`);
  expect(asked({})).toBe(`model: expected a model (an object with stream()); ${advice}, got an object`);
  expect(asked(undefined)).toBe(
    'model: an agent needs a model (for an AI SDK model, use fromAiSdk(model) from @whoa/ai-sdk), or your own planner',
  );
  expect(agent({ model })).toBe('planner: an agent has a model or a planner, not both');
  const world = createVirtualWorld();
  expect(refusal(() => createModelPlanner({ model: 'x' as never, tools: [], world }))).toContain('model: the name');
});

test('a tool rejects an invalid schema, and explains what to do', () => {
  expect(tool({ inputSchema: { type: 'object', properties: {} } })).toMatch(
    /^inputSchema: JSON Schema cannot check a value; .*zod, valibot or arktype.*inputJsonSchema$/,
  );
  expect(tool({ inputSchema: { at: z.string() } })).toBe(
    'inputSchema: these are the fields of a schema; wrap them in a schema, as in z.object({ … })',
  );
  expect(tool({ inputSchema: { at: 'string' } })).toMatch(/^inputSchema: expected a Standard Schema/);
  expect(tool({ inputSchema: undefined })).toMatch(/^inputSchema: expected a Standard Schema .*, got undefined$/);
  expect(tool({ execute: undefined })).toBe('execute: expected a function, got undefined');
  expect(tool({ timeoutMS: 5 })).toMatch(
    /^timeoutMS: unknown setting; did you mean 'timeoutMs'\? The settings are .*replay/,
  );
  expect(tool({ effects: 'none' })).toBe("effects: expected 'read' or 'write' or 'execute', got \"none\"");
  expect(tool({ undo: 'x' })).toBe('undo: expected a function, got "x"');
});

test('a schema that cannot describe itself is named by its tool', () => {
  const failing = {
    '~standard': {
      version: 1 as const,
      vendor: 'test',
      validate: (value: unknown) => ({ value }),
      jsonSchema: {
        input: () => {
          throw new Error('no');
        },
      },
    },
  };
  const tools = [defineTool({ ...look, inputSchema: failing })];
  expect(refusal(() => createAgent({ name: 'a', model, tools }))).toBe(
    "tools: the schema of 'look' failed to describe itself; give the tool an inputJsonSchema",
  );
});

test('a tool that defineTool did not make is checked where it is used', () => {
  const bare = (options: object): Tool => ({ ...defineTool(look), ...options }) as Tool;
  for (const used of [
    (one: unknown) => agent({ tools: [one] }),
    (one: unknown) => refusal(() => createRuntime({ tools: [one as Tool] })),
  ]) {
    expect(used(bare({ whenCancelled: 'finish' }))).toBe(
      "timeoutMs: 'look' finishes when cancelled, so it needs a timeoutMs",
    );
    expect(used(bare({ timeoutMs: Infinity }))).toBe(
      'tools[0].timeoutMs: expected more than 0 to 600000 ms, got Infinity',
    );
    expect(used(bare({ name: 'a b' }))).toMatch(/^tools\[0\]\.name: expected 1 to 64 of/);
    expect(used(null)).toBe('tools[0]: expected a tool; make one with defineTool, got null');
    expect(used(bare({ execute: undefined }))).toBe('tools[0].execute: expected a function, got undefined');
  }
  expect(agent({ tools: [defineTool(look), bare({})] })).toBe("tools: two tools are named 'look'");
  const advice = 'convert tools of the AI SDK with fromAiSdkTools({ … }) from @whoa/ai-sdk';
  expect(agent({ tools: { look } })).toBe(`tools: expected a list, got an object; ${advice}`);
  expect(agent({ tools: [{ description: 'x', inputSchema: {}, execute: () => 'y' }] })).toBe(
    `tools[0]: it has no name; ${advice}`,
  );
  // A hole is no tool.
  expect(agent({ tools: Array.from({ length: 1 }) })).toMatch(/^tools\[0\]: expected a tool/);
});

test('a bare tool is copied when it is passed, and its methods keep their receiver', async () => {
  class Counter {
    readonly name = 'count';
    readonly description = 'counts';
    readonly inputSchema = z.object({});
    readonly inputJsonSchema = { type: 'object' };
    timeoutMs = 1_000;
    counted = 0;
    execute() {
      return `${++this.counted}`;
    }
  }
  const counter = new Counter();
  const runtime = createRuntime({ tools: [counter as unknown as Tool] });
  counter.timeoutMs = Number.NaN;
  counter.execute = () => 'changed';
  const [result] = await runtime.execute([{ id: '1', tool: 'count', input: {} }]);
  expect(result).toMatchObject({ state: 'finished', content: '1' });
  expect(runtime.tools.get('count')).toMatchObject({ timeoutMs: 1_000, whenCancelled: 'interrupt', replay: 'never' });
});

test('a run refuses options and input that cannot work', () => {
  using token = new CancellationToken();
  expect(run({ token: token.signal })).toMatch(/^token: expected a CancellationToken; pass a signal as `signal`/);
  expect(run({ id: '' })).toBe('id: expected a non-empty string, got ""');
  expect(run({ maxDurationMs: 5 })).toMatch(/^maxDurationMs: unknown setting/);
  expect(run({}, null)).toMatch(/^input: expected a string, or a list of .*, got null$/);
  expect(run({}, { role: 'assistant', content: [] })).toMatch(/^input.role: expected 'user'; /);
  expect(run({}, [{ type: 'text' }])).toMatch(/^input\[0\]: expected a string, or a list of/);
  expect(run({}, { role: 'user', content: 5 })).toMatch(/^input.content: expected a string, .*, got 5$/);
});

test('conversations and sub-agents refuse what cannot work', async () => {
  const one = createAgent({ name: 'a', planner });
  const make = (options: object): string => refusal(() => createConversations({ agent: one, ...options }));
  expect(make({ agent: undefined })).toBe('agent: expected an agent (an object with run()), got undefined');
  expect(make({ policy: 'wait' })).toMatch(
    /^policy: expected 'replace' or 'queue' or 'merge' or 'steer' or 'reject', got "wait"/,
  );
  expect(make({ maxConversations: 0 })).toMatch(/^maxConversations: expected a whole number from 1, or Infinity/);
  expect(make({ onreply: () => {} })).toMatch(/^onreply: unknown setting; did you mean 'onReply'/);
  const conversations = createConversations({ agent: one });
  const said = (id: unknown, message: unknown, options = {}): Promise<unknown> =>
    conversations.processMessage(id as string, message as string, options).catch((error: Error) => error.message);
  expect(await said('', 'x')).toBe('id: expected a non-empty string, got ""');
  expect(await said('c', undefined)).toMatch(/^message: expected a string, .*, got undefined$/);
  expect(await said('c', 'x', { debounceMs: Number.NaN })).toBe('debounceMs: expected 0 ms or more, got NaN');
  expect(await said('c', 'x', { policy: 'wait' })).toMatch(/^policy: /);
  expect(await said('c', 'x')).toMatchObject({ status: 'answered' });
  expect(refusal(() => createAgentTool({} as Agent, { description: 'x' }))).toMatch(/^agent: expected an agent/);
  expect(refusal(() => createAgentTool(one, {} as { description: string }))).toMatch(/^description: expected a string/);
});

test('a cancel without a mode uses the mode of the agent or the call', async () => {
  const world = createVirtualWorld();
  const wait = defineTool({ ...look, name: 'wait', execute: (_input, { signal }) => heard(signal) });
  const step = { call: 'wait', input: {} };
  const asking = (): Agent =>
    createAgent({
      name: 'a',
      model: createScriptedModel([[step], ['done']], world),
      tools: [wait],
      stopMode: 'kill',
      world,
    });
  const stopped = asking().run('x');
  await world.clock.advance(1);
  expect(stopped.cancel('why', { mode: undefined } as object)).toMatchObject({ result: 'accepted', level: 'kill' });
  expect(await stopped.outcome).toMatchObject({ status: 'cancelled', reason: { kind: 'user', message: 'why' } });
  const goingOn = asking().run('x');
  const started = await firstCall(goingOn.events);
  expect(goingOn.cancelCall(started, 'enough', { mode: undefined } as object)).toMatchObject({ level: 'abort' });
  expect(await goingOn.outcome).toMatchObject({ status: 'success', calls: [{ state: 'interrupted' }] });
});

async function firstCall(events: AsyncIterable<{ type: string; callId?: string }>): Promise<string> {
  for await (const event of events) if (event.type === 'call-start') return event.callId!;
  return 'no call';
}

function heard(signal: AbortSignal): Promise<string> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))));
}
