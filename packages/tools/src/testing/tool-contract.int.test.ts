import { setTimeout as sleep } from 'node:timers/promises';
import { createInterruptedError, defineTool, type Tool, type ToolContext } from '@whoa/core';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { expectNothingLeft } from '../../../../test/tools/nothing-left.ts';
import { createToolContract, type ToolContractOptions } from './tool-contract.ts';

expectNothingLeft();

const BOUND_MS = 100;
/** Longer than the bound, and not so long that the tests have to wait for it. */
const LONG_MS = 400;

type Execute = (ms: number, context: ToolContext) => Promise<string>;

function createContract(execute: Execute, rest: Partial<Tool> = {}): ToolContractOptions {
  const tool = defineTool({
    name: 'wait',
    description: 'Waits',
    inputSchema: z.object({ ms: z.number() }),
    effects: 'read',
    execute: ({ ms }, context) => execute(ms, context),
  });
  const whole = { ...tool, ...rest } as Tool;
  return { create: () => ({ tool: whole, input: { ms: 0 }, slow: { input: { ms: LONG_MS } } }), timeoutMs: BOUND_MS };
}

async function findFailures(options: ToolContractOptions): Promise<string[]> {
  const failures: string[] = [];
  for (const { id, run } of createToolContract(options)) {
    await run().catch(() => failures.push(id));
  }
  // Let the tools that do not stop come to their end.
  await sleep(LONG_MS);
  return failures;
}

const obedient: Execute = async (ms, { signal, token }) => {
  try {
    await sleep(ms, undefined, { signal });
    return 'done';
  } catch {
    throw createInterruptedError(token, { content: 'half' });
  }
};

test('a tool that stops on cancel passes every case', async () => {
  expect(await findFailures(createContract(obedient))).toEqual([]);
});

test('a tool that must finish passes too: it is let finish', async () => {
  const finishing = createContract((ms) => sleep(ms / 8).then(() => 'done'), {
    whenCancelled: 'finish',
    timeoutMs: 1_000,
  });
  const skip = { 'throws-after-abort': 'it does not hear the abort' };
  const failing = await findFailures({ ...finishing, skip });
  expect(failing.filter((id) => !(id in skip))).toEqual([]);
});

test('a tool that ignores its signal fails the contract', async () => {
  const failures = await findFailures(createContract(async (ms) => sleep(ms).then(() => 'done')));
  expect(failures).toEqual(
    expect.arrayContaining(['cancelled-mid-way', 'cancelled-twice', 'killed-mid-way', 'started-too-late']),
  );
});

test('a tool that listens too late misses the cancel that came before, and is found out', async () => {
  const late: Execute = async (ms, { signal }) => {
    await new Promise((resolve) => setImmediate(resolve));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => resolve('done'), ms);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      });
    });
  };
  expect(await findFailures(createContract(late))).toEqual(['started-too-late', 'cancelled-in-the-same-tick']);
});

test('a tool that leaves a timer or a listener behind is found out', async () => {
  const timers: NodeJS.Timeout[] = [];
  const withTimer: Execute = (ms, context) => {
    timers.push(setTimeout(() => undefined, 10_000));
    return obedient(ms, context);
  };
  expect(await findFailures(createContract(withTimer))).toEqual(['leaves-nothing']);
  for (const timer of timers) clearTimeout(timer);
});

test('a skipped case has a reason and is not run', () => {
  const cases = createToolContract({ ...createContract(obedient), skip: { deaf: 'it is over at once' } });
  expect(cases.filter(({ skip }) => skip !== undefined)).toMatchObject([{ id: 'deaf', skip: 'it is over at once' }]);
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
});
