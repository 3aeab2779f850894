import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { finished, notStarted, stillUnknown } from '../../effects/index.ts';
import { createAgent } from '../../run/agent.ts';
import { formatStopReport } from '../../run/report/report.ts';
import { CallOutcomeUnknownError } from '../../stop/errors.ts';
import { CancellationToken } from '../../stop/token/token.ts';
import { checkHistory } from '../../testing/checker.ts';
import { createRecorder } from '../../testing/recorder.ts';
import { createScriptedModel } from '../../testing/scripted-model.ts';
import { createVirtualWorld, flushMicrotasks } from '../../testing/virtual-world.ts';
import type { CallResult } from '../result.ts';
import { createRuntime } from '../runtime.ts';
import { defineTool, type FindOutContext, type Tool } from '../tool.ts';

type FindOut = NonNullable<Tool['findOut']>;

interface Charge {
  readonly findOut: FindOut;
  readonly execute?: Tool['execute'];
  readonly undo?: Tool['undo'];
}

const charge = ({ findOut, execute = () => new Promise(() => {}), undo }: Charge): Tool =>
  defineTool({
    name: 'charge',
    description: 'Charges a card',
    inputSchema: z.object({ cents: z.number() }),
    effects: 'write',
    execute,
    findOut: findOut as never,
    undo,
  }) as Tool;

/** Runs one call, kills it once it runs, and returns its result. */
async function kill(options: Charge, cleanupTimeoutMs = 2_000) {
  const world = createVirtualWorld();
  const token = new CancellationToken({ clock: world.clock });
  const runtime = createRuntime({ tools: [charge(options)], world, cleanupTimeoutMs });
  const results = runtime
    .execute([{ id: 'c1', tool: 'charge', input: { cents: 5 } }], { token })
    .catch((error: { partial: CallResult[] }) => error.partial);
  await flushMicrotasks();
  token.cancel({}, { mode: 'kill' });
  await flushMicrotasks();
  return { world, runtime, result: async () => (await results)[0]! };
}

test('a call that was abandoned has the result that its tool finds out', async () => {
  const seen: FindOutContext[] = [];
  let key = '';
  const { result } = await kill({
    execute: (_, { effectKey }) => {
      key = effectKey;
      return new Promise(() => {});
    },
    findOut: (input, context) => {
      seen.push(context);
      return finished({ content: `Charged ${(input as { cents: number }).cents}`, details: { id: 'ch_1' } });
    },
  });
  expect(await result()).toMatchObject({
    state: 'finished',
    content: 'Charged 5',
    details: { id: 'ch_1' },
    isError: false,
    foundOut: { at: expect.any(Number) as number },
  });
  expect(seen).toMatchObject([{ callId: 'c1', effectKey: key, startedAt: expect.any(Number) as number }]);
  expect(key).not.toBe('');
});

test.each<[string, FindOut]>([
  ['proves nothing', () => stillUnknown()],
  ['throws', () => Promise.reject(new Error('503'))],
  [
    'throws before it waits',
    () => {
      throw new Error('503');
    },
  ],
  ['returns nothing', () => undefined as never],
  ['returns something else', () => ({ found: 'maybe' }) as never],
  ['says that a call had no effect whose code still runs', () => notStarted()],
])('a call stays unknown if its findOut %s', async (_, findOut) => {
  const { result, runtime } = await kill({ findOut });
  const end = await result();
  expect(end).toMatchObject({ state: 'unknown', isError: true });
  expect(end.foundOut).toBeUndefined();
  expect(runtime.lateResults.entries()).toHaveLength(1);
});

test('a look ends with the time for cleanups, and its signal aborts', async () => {
  const aborted = vi.fn();
  const { result, world } = await kill(
    {
      findOut: (_, { signal }) => {
        signal.addEventListener('abort', aborted);
        return new Promise(() => {});
      },
    },
    700,
  );
  await world.clock.advance(699);
  expect(aborted).not.toHaveBeenCalled();
  await world.clock.advance(1);
  expect(aborted).toHaveBeenCalledOnce();
  expect(await result()).toMatchObject({ state: 'unknown' });
});

test('a call that a tool reports as unknown is found out without a cancel, and may have had no effect', async () => {
  const lost = (): never => {
    throw new CallOutcomeUnknownError('the response was lost');
  };
  const ask = async (findOut: FindOut) => {
    const runtime = createRuntime({ tools: [charge({ execute: lost, findOut })], world: createVirtualWorld() });
    return (await runtime.execute([{ id: 'c1', tool: 'charge', input: { cents: 5 } }]))[0];
  };
  expect(await ask(() => finished('Charged'))).toMatchObject({ state: 'finished', content: 'Charged' });
  expect(await ask(() => notStarted())).toMatchObject({
    state: 'not-started',
    content: 'It did not take effect, and cannot any more: its tool found out.',
    foundOut: { at: expect.any(Number) as number },
  });
});

test('a call that is known is not looked at', async () => {
  const findOut = vi.fn(() => finished('Charged twice'));
  const runtime = createRuntime({
    tools: [charge({ execute: () => 'Charged', findOut })],
    world: createVirtualWorld(),
  });
  expect(await runtime.execute([{ id: 'c1', tool: 'charge', input: { cents: 5 } }])).toMatchObject([
    { content: 'Charged' },
  ]);
  expect(await runtime.execute([{ id: 'c2', tool: 'charge', input: 'nonsense' }])).toMatchObject([
    { state: 'not-started' },
  ]);
  expect(findOut).not.toHaveBeenCalled();
});

test('the report lists a call that was found out, and its code that still runs; undo gets its result', async () => {
  const world = createVirtualWorld();
  const recorder = createRecorder();
  const undo = vi.fn();
  const tool = charge({ findOut: () => finished({ content: 'Charged', details: { id: 'ch_1' } }), undo });
  const model = createScriptedModel([[{ call: 'charge', input: { cents: 5 } }]]);
  const agent = createAgent({ name: 'till', model, tools: [tool], world, hooks: recorder.hooks });
  const run = agent.run('Charge it');
  await vi.waitFor(() => expect(model.requests).toHaveLength(1));
  await flushMicrotasks();
  run.cancel({}, { mode: 'kill', undo: true });
  const outcome = await run.outcome;
  if (outcome.status !== 'cancelled') throw new Error(outcome.status);
  expect(outcome.stop).toMatchObject({
    calls: [{ state: 'finished', foundOut: true, undo: 'undone' }],
    isClean: false,
  });
  expect(outcome.stop.abandoned).toMatchObject([{ name: 'code of charge (call-1)' }]);
  expect(formatStopReport(outcome.stop)).toContain('charge finished, found out afterwards, undone');
  expect(undo.mock.calls[0]).toMatchObject([{ details: { id: 'ch_1' } }, { effectKey: expect.any(String) as string }]);
  expect(checkHistory(recorder.history)).toEqual([]);
});
