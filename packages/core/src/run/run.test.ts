import { expect, test } from 'vitest';
import { z } from 'zod';
import { createVirtualWorld, flushMicrotasks } from '../testing/virtual-world.ts';
import { defineTool, type Tool } from '../tool/tool.ts';
import { createAgent } from './agent.ts';
import { callTools, type Planner, reply } from './reply/planner.ts';
import type { Run } from './run.ts';
import type { AgentParts } from './setup.ts';
import { createAgentTool } from './sub-agent.ts';

function setUp(next: Planner['next'], parts: Partial<AgentParts> = {}) {
  const world = createVirtualWorld();
  return { ...world, world, agent: createAgent({ name: 'a', planner: { next }, world, ...parts }) };
}

test('work that outlives its run is in the late results, with its end', async () => {
  const ends = Promise.withResolvers<string>();
  const fails = Promise.withResolvers<string>();
  const { agent, clock } = setUp((_, { leaveRunning }) => {
    leaveRunning?.('stream', ends.promise);
    leaveRunning?.('socket', fails.promise);
    return reply('done');
  });
  const run = agent.run('go', { id: 'r' });
  await clock.advance(1_000);
  expect(await run.outcome).toMatchObject({ status: 'success' });
  const abandonedAt = clock.now();
  const reason = { kind: 'parent', message: 'its run ended', at: abandonedAt };
  expect(agent.lateResults.entries()).toMatchObject([
    { key: expect.stringMatching(/^r\/stream\/./) as string, name: 'stream', reason, abandonedAt },
    { key: expect.stringMatching(/^r\/socket\/./) as string, name: 'socket', reason, abandonedAt },
  ]);
  await clock.advance(5);
  ends.resolve('late');
  fails.reject(new Error('reset'));
  await flushMicrotasks();
  expect(agent.lateResults.entries().map(({ late }) => late)).toStrictEqual([
    { at: abandonedAt + 5, state: 'finished', value: 'late' },
    { at: abandonedAt + 5, state: 'failed', error: new Error('reset') },
  ]);
});

test('a run does not outlive the block that owns it', async () => {
  const { agent, clock } = setUp((_, { token }) => new Promise((resolve) => token.onCancel(() => resolve(reply('')))));
  const runs: Run[] = [];
  const failing = async (): Promise<void> => {
    await using run = agent.run('go');
    runs.push(run);
    await clock.advance(10);
    throw new Error('the request failed');
  };
  await expect(failing()).rejects.toThrow('the request failed');
  const reason = { kind: 'parent', message: 'its owner ended' };
  const settled = await Promise.race([runs[0]!.outcome, Promise.resolve('still running')]);
  expect(settled).toMatchObject({ status: 'cancelled', reason });
  expect(clock.pending).toBe(0);
});

test('disposing a run that has ended, that is being stopped, or that is disposed already changes nothing', async () => {
  const events: string[] = [];
  const { agent, clock } = setUp((_, { turn }) => (turn === 1 ? reply('done') : reply('')), {
    hooks: { any: ({ type }) => events.push(type) },
  });
  await using ended = agent.run('go');
  await ended.outcome;
  const before = [...events];
  await ended[Symbol.asyncDispose]();
  expect(await ended.outcome).toMatchObject({ status: 'success' });
  expect(events).toEqual(before);
  const stopped = agent.run('go');
  stopped.cancel('stop', { mode: 'now' });
  await Promise.all([stopped[Symbol.asyncDispose](), stopped[Symbol.asyncDispose]()]);
  expect(await stopped.outcome).toMatchObject({ status: 'cancelled', reason: { kind: 'user', message: 'stop' } });
  expect(clock.pending).toBe(0);
});

test('a receipt is true when it is returned, even if a hook has cancelled harder', async () => {
  let harder: unknown;
  const { agent, clock } = setUp((_, { token }) => new Promise((resolve) => token.onCancel(() => resolve(reply('')))), {
    hooks: {
      'cancel-requested': ({ receipt }) => {
        if (receipt === 'escalated') harder ??= run.cancel('harder', { mode: 'now' });
      },
    },
  });
  const run = agent.run('go');
  run.cancel('stop', { mode: { drainMs: 10_000, abortMs: 2_000 } });
  const sooner = run.cancel('sooner', { mode: { drainMs: 5_000, abortMs: 2_000 } });
  expect(harder).toMatchObject({ result: 'escalated', level: 'abort', killAt: clock.now() + 2_000 });
  expect(sooner).toEqual({ ...(harder as object), result: 'escalated' });
  expect(run.cancel('again', { mode: 'now' })).toMatchObject({ result: 'unchanged', killAt: clock.now() + 2_000 });
  await run.outcome;
  expect(run.cancel()).toEqual({ result: 'too-late' });
});

test('an invalid message is rejected by name', async () => {
  const { agent } = setUp(() => reply('x'));
  const run = agent.run('go');
  expect(() => run.steer(7 as never)).toThrow('message: expected a string');
  await run.outcome;
});

test('the outcome describes the run, from its start to its end', async () => {
  const { agent, clock } = setUp(() => new Promise((resolve) => clock.setTimer(30, () => resolve(reply('done')))));
  const startedAt = clock.now();
  const run = agent.run('go', { id: 'r' });
  await clock.advance(30);
  expect(await run.outcome).toStrictEqual({
    runId: 'r',
    agent: 'a',
    status: 'success',
    text: 'done',
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: [{ type: 'text', text: 'done' }], stopReason: 'stop' },
    ],
    calls: [],
    usage: { inputTokens: 0, outputTokens: 0, isComplete: true },
    turns: 1,
    undelivered: [],
    startedAt,
    endedAt: startedAt + 30,
  });
});

test('a maximum duration stops a run immediately, and is in the reason', async () => {
  const { agent, clock } = setUp(() => new Promise(() => {}), { budgets: { maxDurationMs: 50 } });
  const run = agent.run('go');
  await clock.advance(50 + 12_000);
  expect(await run.outcome).toMatchObject({
    status: 'cancelled',
    reason: { kind: 'deadline', message: 'the run took longer than 50 ms' },
    stop: { levels: [{ level: 'abort', afterMs: 0 }, { level: 'kill' }] },
  });
});

test('a sub-agent that did nothing that can be undone is not undone', async () => {
  const { world, clock } = setUp(() => reply('x'));
  const undone: string[] = [];
  const write = defineTool({
    name: 'write',
    description: '',
    inputSchema: z.unknown(),
    execute: () => 'written',
    undo: (_, { callId }) => void undone.push(callId),
  });
  const child = (name: string, tools: readonly Tool[]): Tool => {
    const next: Planner['next'] = (_, { turn }) =>
      turn === 1 && tools.length > 0 ? callTools([{ id: `${name}-1`, tool: 'write', input: {} }]) : reply('done');
    return createAgentTool(createAgent({ name, planner: { next }, tools, world }), { description: '' }) as Tool;
  };
  const planner: Planner = {
    next: (_, { turn }) =>
      turn === 1
        ? callTools(['idle', 'busy'].map((tool) => ({ id: tool, tool, input: { task: 'go' } })))
        : new Promise(() => {}),
  };
  const told: string[] = [];
  const agent = createAgent({
    name: 'lead',
    planner,
    tools: [child('idle', []), child('busy', [write as Tool])],
    world,
    hooks: { 'undo-start': ({ callId }) => told.push(callId) },
  });
  const run = agent.run('go');
  await flushMicrotasks();
  run.cancel({}, { mode: 'kill', undo: true });
  await clock.advance(1_000);
  await run.outcome;
  expect([told, undone]).toEqual([['busy'], ['busy-1']]);
});
