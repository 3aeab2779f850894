import { expect, test } from 'vitest';
import { z } from 'zod';
import { guard } from '../../stop/bounded/guard.ts';
import { createRuntime } from '../runtime.ts';
import { defineTool } from '../tool.ts';

test('every call has its own effect key, and `beforeCall` gets the same', async () => {
  const before: string[] = [];
  const during: string[] = [];
  const tool = defineTool({
    name: 'pay',
    description: 'Pays',
    inputSchema: z.object({}),
    execute: (_, { effectKey }) => String(during.push(effectKey)),
  });
  const create = () =>
    createRuntime({ tools: [tool], beforeCall: (_, { effectKey }) => void before.push(effectKey), concurrency: 1 });
  const calls = ['a', 'b'].map((id) => ({ id, tool: 'pay', input: {} }));
  const runtime = create();
  await runtime.execute(calls);
  // The ids of a second execution repeat; its effects do not.
  await runtime.execute(calls);
  await create().execute(calls);
  expect(new Set(during).size).toBe(6);
  expect(during).toEqual(before);
});

test('a call that is started again keeps its key', async () => {
  const seen: string[] = [];
  const tool = defineTool({
    name: 'pay',
    description: 'Pays',
    inputSchema: z.object({}),
    execute: (_, { effectKey }) => String(seen.push(effectKey)),
  });
  await createRuntime({ tools: [tool] }).execute([{ id: 'a', tool: 'pay', input: {}, effectKey: 'k-7' }]);
  expect(seen).toEqual(['k-7']);
});

test('a guarded function has a key of its own, or the one of an earlier attempt', async () => {
  const getKey = (options: { effectKey?: string } = {}): Promise<string> =>
    guard(({ effectKey }) => Promise.resolve(effectKey), { name: 'pay', ...options });
  expect(await getKey()).not.toBe(await getKey());
  expect(await getKey({ effectKey: 'k-7' })).toBe('k-7');
  await expect(getKey({ effectKey: '' })).rejects.toThrow('effectKey');
});
