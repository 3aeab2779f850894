import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { CancellationToken } from '../../stop/token/token.ts';
import { createVirtualWorld, flushMicrotasks } from '../../testing/virtual-world.ts';
import { createRuntime, type RuntimeOptions } from '../runtime.ts';
import { defineTool, type Tool } from '../tool.ts';
import type { ApprovalReply, Approve, Call } from './call.ts';
import { NESTED, type ParentRun, type WithNested } from './nested.ts';

const tool = (name: string, execute: Tool['execute'], rest: Partial<Tool> = {}): Tool =>
  ({ ...defineTool({ name, description: name, inputSchema: z.unknown(), execute }), ...rest }) as Tool;

const call = (id: string, toolName = id): Call => ({ id, tool: toolName, input: {} });

function setUp(tools: readonly Tool[], options: Partial<RuntimeOptions> = {}) {
  const world = createVirtualWorld();
  const token = new CancellationToken({ clock: world.clock });
  return { ...world, token, runtime: createRuntime({ tools, world, ...options }) };
}

test('calls that need nothing begin in the tick of the checkpoint', async () => {
  const order: string[] = [];
  const { runtime } = setUp([tool('x', (_, { callId }) => String(order.push(callId)))], {
    hooks: { 'wave-start': () => queueMicrotask(() => order.push('the tick is over')) },
  });
  await runtime.execute([call('1', 'x'), call('2', 'x')]);
  expect(order).toEqual(['1', '2', 'the tick is over']);
});

test.each<[string, unknown, string]>([
  ['true', true, 'written'],
  ['a yes to a preview', { approved: true, shown: { cwd: '/' } }, 'written'],
  ['an object that is no yes', { approved: 1 }, 'Not started: denied: {"approved":1}'],
  ['null', null, 'Not started: denied: null'],
  ['nothing', undefined, 'Not started: denied: undefined'],
  ['a function', Object.assign(() => {}, { approved: true, toString: () => 'f' }), 'Not started: denied: f'],
])('an approver that returns %s denies the call', async (_, answer, content) => {
  const { runtime } = setUp([tool('write', () => 'written')], { approve: () => answer as ApprovalReply });
  expect(await runtime.execute([call('write')])).toMatchObject([{ content }]);
});

test('approval and `beforeCall` get everything about a call', async () => {
  const needs = vi.fn(() => true);
  const approve: Approve = Object.assign(() => true, { isRequired: needs });
  const beforeCall = vi.fn();
  const { runtime } = setUp([tool('look', () => 'seen', { effects: 'read' })], { approve, beforeCall });
  await runtime.execute([call('look')]);
  const look = runtime.tools.get('look');
  expect(needs).toHaveBeenCalledWith({ call: call('look'), tool: look, effects: 'read', input: {} });
  expect(beforeCall.mock.calls).toEqual([
    [call('look'), { tool: look, signal: expect.any(AbortSignal) as unknown, effectKey: 'id-1-0' }],
  ]);
});

test('a question that is not answered when the call is stopped is left running, a no is not', async () => {
  const leaveRunning = vi.fn();
  const answers: Record<string, Promise<boolean>> = { no: Promise.resolve(false), open: new Promise(() => {}) };
  const options: WithNested<Partial<RuntimeOptions>, ParentRun> = {
    approve: ({ call: { id } }) => answers[id]!,
    [NESTED]: { addUsage: () => {}, undoes: () => false, leaveRunning },
  };
  const { runtime, token } = setUp([tool('write', () => 'written')], options);
  await runtime.execute([call('no', 'write')], { token });
  expect(leaveRunning).not.toHaveBeenCalled();
  const open = runtime.execute([call('open', 'write')], { token }).catch(() => {});
  await flushMicrotasks();
  token.cancel();
  await open;
  expect(leaveRunning.mock.calls).toEqual([['approval of write (open)', expect.any(Promise), undefined]]);
});

test('a call that is stopped alone while it is given its keys does not begin, and gives them back', async () => {
  const { runtime } = setUp([
    tool('edit', (_, { callId }) => (callId === '1' ? expect.unreachable('must not start') : 'edited'), {
      exclusive: () => ['file'],
    }),
  ]);
  const first = runtime.execute([call('1', 'edit')]);
  await Promise.resolve();
  expect(runtime.cancelCall('1')).toMatchObject({ result: 'accepted' });
  expect(await first).toMatchObject([{ state: 'not-started', reason: { kind: 'user' } }]);
  expect(await runtime.execute([call('2', 'edit')])).toMatchObject([{ state: 'finished' }]);
});

test('a call whose keys stay taken fails with their names, and a call of an unknown tool with the known tools', async () => {
  const { runtime, clock, token } = setUp([
    tool('edit', () => new Promise(() => {}), { exclusive: () => ['file', 'folder'] }),
    tool('other', () => 'x'),
  ]);
  const holder = runtime.execute([call('holder', 'edit')], { token }).catch(() => {});
  await flushMicrotasks();
  const second = runtime.execute([call('second', 'edit'), call('edti')]);
  await clock.advance(60_000);
  expect(await second).toMatchObject([
    { content: "Not started: file, folder is still held by call 'holder'; try again later" },
    { content: "Not started: there is no tool 'edti'; the tools are edit, other" },
  ]);
  token.cancel({}, { mode: 'kill' });
  await holder;
});

test('a call that is stopped alone by a listener for its start never runs', async () => {
  const ran = vi.fn(() => 'ran');
  const stop = (): unknown => runtime.cancelCall('alone', 'not this one');
  const { runtime, token } = setUp([tool('alone', ran)], { hooks: { 'call-start': stop } });
  expect(await runtime.execute([call('alone')], { token })).toMatchObject([{ state: 'not-started' }]);
  expect(ran).not.toHaveBeenCalled();
});

test.for(
  (['graceful', 'now', 'kill'] as const).flatMap((mode) =>
    (['interrupt', 'finish'] as const).map((whenCancelled) => ({ mode, whenCancelled })),
  ),
)(
  'a listener for the start of a call that cancels with $mode keeps it from running, if it would $whenCancelled',
  async ({ mode, whenCancelled }) => {
    const ran = vi.fn(() => 'ran');
    const events: string[] = [];
    const { runtime, token } = setUp([tool('pay', ran, { whenCancelled, timeoutMs: 1_000 })], {
      hooks: {
        'call-start': () => token.cancel('nothing more', { mode }),
        any: ({ type }) => void (type.startsWith('call-') && events.push(type)),
      },
    });
    await expect(runtime.execute([call('pay')], { token })).rejects.toMatchObject({
      reason: { message: 'nothing more' },
      partial: [{ state: 'not-started' }],
    });
    expect(ran).not.toHaveBeenCalled();
    expect(events.filter((type) => type !== 'call-waiting')).toEqual(['call-start', 'call-end']);
  },
);

test('a failed question counts as a no, and an answer after the stop has no effect', async () => {
  const late = Promise.withResolvers<boolean>();
  const answers: unknown[] = [];
  const { runtime } = setUp([tool('write', () => 'written')], {
    approve: ({ call: { id } }) => (id === 'late' ? late.promise : Promise.reject(new Error('broken'))),
    hooks: { 'approval-answered': ({ callId, approved }) => answers.push([callId, approved]) },
  });
  const running = runtime.execute([call('late', 'write'), call('broken', 'write')]);
  await flushMicrotasks();
  runtime.cancelCall('late');
  late.resolve(true);
  expect((await running).map(({ state, content }) => [state, content])).toMatchObject([
    ['not-started', expect.stringContaining('Not started')],
    ['not-started', 'Not started: broken'],
  ]);
  await flushMicrotasks();
  expect(answers).toEqual([['broken', false]]);
});

test('a tool that needs a yes does not start where no one can be asked, nor while it is still deciding', async () => {
  const needsApproval = vi.fn(() => true);
  const undecided = { needsApproval: () => new Promise<boolean>(() => {}), effects: 'read' as const };
  const { runtime, token } = setUp([
    tool('pay', () => 'paid', { effects: 'read', needsApproval }),
    tool('slow', () => 'paid', undecided),
  ]);
  expect((await runtime.execute([call('pay')]))[0]).toMatchObject({
    state: 'not-started',
    content: 'Not started: it needs approval, and its agent has no `approve` function',
  });
  expect(needsApproval).toHaveBeenCalledWith({}, { callId: 'pay', signal: expect.any(AbortSignal) as AbortSignal });
  const running = runtime.execute([call('slow')], { token });
  await flushMicrotasks();
  token.cancel();
  await expect(running).rejects.toMatchObject({ partial: [{ state: 'not-started' }] });
});
