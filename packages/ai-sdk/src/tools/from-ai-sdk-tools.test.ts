import { CancellationToken, createRuntime, type StopMode } from '@whoa/core';
import { jsonSchema, tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { CallEvent } from '../../../core/src/tool/events.ts';
import type { AiSdkTool } from './ai-sdk-tool.ts';
import { type FromAiSdkToolsOptions, fromAiSdkTools } from './from-ai-sdk-tools.ts';

async function callOnce(given: AiSdkTool, input: unknown, options: FromAiSdkToolsOptions = {}) {
  const events: CallEvent[] = [];
  const hooks = { any: (event: { type: string }) => events.push(event as CallEvent) };
  const runtime = createRuntime({ tools: fromAiSdkTools({ it: given }, options), hooks });
  const [result] = await runtime.execute([{ id: 'a', tool: 'it', input }]);
  return { ...result!, events };
}

test('a tool of the AI SDK works for an agent of ours', async () => {
  const add = tool({
    description: 'Adds',
    inputSchema: z.object({ a: z.number(), b: z.number() }),
    execute: ({ a, b }, { toolCallId, abortSignal }) => ({ sum: a + b, toolCallId, aborted: abortSignal?.aborted }),
  });
  const { state, content, details, isError } = await callOnce(add, { a: 1, b: 2 });
  expect({ state, isError }).toEqual({ state: 'finished', isError: false });
  expect(details).toEqual({ sum: 3, toolCallId: 'a', aborted: false });
  expect(content).toBe(JSON.stringify(details));
  expect(fromAiSdkTools({ add })[0]).toMatchObject({ name: 'add', description: 'Adds', effects: 'execute' });
});

test('a tool gets the key of its effect beside its call id', async () => {
  const keyed = tool({
    inputSchema: z.object({}),
    execute: (_, options) => (options as unknown as { effectKey: string }).effectKey,
  });
  const [first, second] = [await callOnce(keyed, {}), await callOnce(keyed, {})];
  expect(first.content).toMatch(/^.{32,}$/);
  expect(second.content).not.toBe(first.content);
});

test('the model gets an error for an invalid input', async () => {
  const add = tool({ inputSchema: z.object({ a: z.number() }), execute: () => 'never' });
  expect(await callOnce(add, { a: 'one' })).toMatchObject({ state: 'not-started', isError: true });
  const checked = tool({
    inputSchema: jsonSchema<{ a: number }>(
      { type: 'object', properties: { a: { type: 'number' } } },
      {
        validate: (value) =>
          typeof (value as { a?: unknown }).a === 'number'
            ? { success: true, value: value as { a: number } }
            : { success: false, error: new Error('a must be a number') },
      },
    ),
    execute: ({ a }) => `got ${a}`,
  });
  expect(await callOnce(checked, { a: 1 })).toMatchObject({ state: 'finished', content: 'got 1' });
  expect((await callOnce(checked, {})).content).toMatch(/a must be a number/);
  expect(fromAiSdkTools({ checked })[0]?.inputJsonSchema).toMatchObject({ type: 'object' });
});

test('the model gets the tool’s model output, with images and errors', async () => {
  const inputSchema = z.object({});
  const shot = tool({
    inputSchema,
    execute: () => ({ png: 'AAAA' }),
    toModelOutput: ({ output }) => ({
      type: 'content',
      value: [
        { type: 'text', text: 'Here:' },
        { type: 'file', mediaType: 'image/png', data: { type: 'data', data: output.png } },
      ],
    }),
  });
  expect(await callOnce(shot, {})).toMatchObject({
    content: [
      { type: 'text', text: 'Here:' },
      { type: 'image', mediaType: 'image/png', data: 'AAAA' },
    ],
    details: { png: 'AAAA' },
  });
  const wrong = tool({
    inputSchema,
    execute: () => 'raw',
    toModelOutput: () => ({ type: 'error-text', value: 'It went wrong' }),
  });
  expect(await callOnce(wrong, {})).toMatchObject({ content: 'It went wrong', isError: true });
});

test('a streaming tool shows its output so far; the last output is its result', async () => {
  const counting = tool({
    inputSchema: z.object({}),
    async *execute() {
      yield 'one';
      await Promise.resolve();
      yield 'two';
    },
  });
  const { content, events } = await callOnce(counting, {});
  expect(content).toBe('two');
  expect(events.filter(({ type }) => type === 'call-update')).toHaveLength(2);
});

test.each<[StopMode, object]>([
  ['now', { state: 'interrupted', details: { sent: 2 } }],
  ['graceful', { state: 'finished', details: { sent: 5 } }],
])('a streaming tool that ignores its signal, cancelled with %s while it shows a value', async (mode, result) => {
  using token = new CancellationToken();
  let isClosed = false;
  const mails = tool({
    inputSchema: z.object({}),
    async *execute() {
      try {
        for (let sent = 1; sent <= 5; sent++) yield await Promise.resolve({ sent });
      } finally {
        isClosed = true;
      }
    },
  });
  let shown = 0;
  const hooks = { 'call-update': () => void (++shown === 2 && token.cancel('enough', { mode })) };
  const runtime = createRuntime({ tools: fromAiSdkTools({ mails }), hooks });
  const execution = runtime.execute([{ id: 'a', tool: 'mails', input: {} }], { token });
  await expect(execution).rejects.toMatchObject({ partial: [result] });
  expect(isClosed).toBe(true);
});

test('a tool receives a cancel through its signal', async () => {
  using token = new CancellationToken();
  const started = Promise.withResolvers<void>();
  const wait: AiSdkTool = tool({
    inputSchema: z.object({}),
    execute: (_, { abortSignal }) =>
      new Promise<string>((_resolve, reject) => {
        abortSignal!.addEventListener('abort', () => reject(abortSignal!.reason as Error), { once: true });
        started.resolve();
      }),
  });
  const runtime = createRuntime({ tools: fromAiSdkTools({ wait }) });
  const execution = runtime.execute([{ id: 'a', tool: 'wait', input: {} }], { token });
  const ending = execution.catch((error: unknown) => error);
  await started.promise;
  token.cancel({ kind: 'user' }, { mode: 'now' });
  expect(await ending).toMatchObject({ partial: [{ state: 'interrupted' }] });
});

describe('settings', () => {
  const book: AiSdkTool = {
    inputSchema: z.object({}),
    description: ({ context }: { context: string }) => context,
    execute: () => '',
  };

  test('options of a tool apply, and its context reaches it', () => {
    const settings = { book: { whenCancelled: 'finish', timeoutMs: 5_000, effects: 'write' } } as const;
    const [first] = fromAiSdkTools({ book }, { settings, context: 'Books' });
    expect(first).toMatchObject({ whenCancelled: 'finish', timeoutMs: 5_000, effects: 'write', description: 'Books' });
  });

  test('a tool without execute runs in the page', () => {
    const [locate] = fromAiSdkTools(
      { locate: { inputSchema: z.object({}) } },
      { settings: { locate: { effects: 'read' } } },
    );
    expect(locate).toMatchObject({ name: 'locate', answeredBy: 'client', effects: 'read' });
  });

  test('tools that cannot work are rejected by name', () => {
    expect(() => fromAiSdkTools({ book }, { settings: { bok: {} } })).toThrow(/no tool 'bok'/);
    expect(() => fromAiSdkTools({ browse: {} })).toThrow(/inputSchema of 'browse'/);
    expect(() => fromAiSdkTools({ odd: { execute: () => '', inputSchema: {} } })).toThrow(/inputSchema of 'odd'/);
  });
});

test.each<[string, unknown, boolean]>([
  ['true', true, true],
  ['a function that says so', ({ euros }: { euros: number }) => euros > 5, true],
  ['an async function', () => Promise.resolve(true), true],
  ['a function that says no', ({ euros }: { euros: number }) => euros > 50, false],
  ['false', false, false],
  ['nothing', undefined, false],
])('needsApproval: %s', async (_, needsApproval, isNeeded) => {
  const ran: unknown[] = [];
  const asked: unknown[] = [];
  const inputSchema = z.object({ euros: z.number() });
  const pay = { ...tool({ inputSchema, execute: (input) => String(ran.push(input)) }), needsApproval };
  const tools = fromAiSdkTools({ pay }, { settings: { pay: { effects: 'read' } } });
  const call = { id: 'a', tool: 'pay', input: { euros: 9 } };
  const alone = createRuntime({ tools });
  expect(await alone.execute([call])).toMatchObject([{ state: isNeeded ? 'not-started' : 'finished' }]);
  expect(ran).toHaveLength(isNeeded ? 0 : 1);
  const approve = ({ effects }: { effects: string }) => asked.push(effects) > 0;
  expect(await createRuntime({ tools, approve }).execute([call])).toMatchObject([{ state: 'finished' }]);
  expect(asked).toEqual(isNeeded ? ['write'] : []);
});

test('a function in needsApproval gets the call, and one that throws keeps it from starting', async () => {
  const seen: unknown[] = [];
  const needsApproval = (...given: unknown[]): boolean => {
    seen.push(given);
    throw new Error('no idea');
  };
  const pay = { ...tool({ inputSchema: z.object({}), execute: () => 'paid' }), needsApproval };
  const result = await callOnce(pay, {}, { context: { user: 'ann' } });
  expect(result).toMatchObject({ state: 'not-started', content: 'Not started: no idea' });
  expect(seen).toMatchObject([[{}, { toolCallId: 'a', messages: [], context: { user: 'ann' } }]]);
});

test.each([
  [undefined, { user: 'bob' }],
  [{ user: 'ann' }, { user: 'ann' }],
])('a tool with the setting %j gets the context %j', async (context, expected) => {
  const seen: unknown[] = [];
  const execute = (_: unknown, options: { readonly context?: unknown }) => String(seen.push(options.context));
  const tools = fromAiSdkTools({ look: { inputSchema: z.object({}), execute } }, { context });
  await createRuntime({ tools, context: { user: 'bob' } }).execute([{ id: 'a', tool: 'look', input: {} }]);
  expect(seen).toEqual([expected]);
});
