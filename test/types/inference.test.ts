// What the compiler works out for people: `npm run check` compiles this file, so a type that gets worse fails it.
import { createCallRecords, createStoppableTurn, guardAiSdkTools } from '@whoa/ai-sdk';
import {
  type Agent,
  type AppContext,
  CancellationToken,
  CancelledError,
  type CancelReason,
  type createAgent,
  type createConversations,
  type createRuntime,
  defineTool,
  guard,
  isCancelledError,
  type Outcome,
  type RunEvent,
  type StopReport,
  type Tool,
} from '@whoa/core';
import type { Approve, createApprovals } from '@whoa/core/approval';
import type { ToolDefinition } from '@whoa/core/embed';
import { isFinalStatus, type StoreCancelReceipt, type TaskRecord, type TaskStatus } from '@whoa/tasks';
import { tool } from 'ai';
import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';

test('a context has the type that the app declares, wherever it is received', () => {
  type Context = Parameters<Tool['execute']>[1]['context'];
  expectTypeOf<Context>().toEqualTypeOf<AppContext | undefined>();
  expectTypeOf<Parameters<Approve>[1]['context']>().toEqualTypeOf<Context>();
  expectTypeOf<NonNullable<Parameters<Agent['run']>[1]>['context']>().toEqualTypeOf<Context>();
  type Hook = NonNullable<NonNullable<NonNullable<Parameters<Agent['run']>[1]>['hooks']>['run-end']>;
  expectTypeOf<Parameters<Hook>[1]['context']>().toEqualTypeOf<Context>();
  interface Caller {
    readonly user: string;
  }
  // An interface is enough, before and after it is declared: docs/guides/agents/context.md declares one.
  expectTypeOf<Caller>().toExtend<Context>();
});

test('plain data is a result', () => {
  const about = { name: 'one', description: '', inputSchema: z.object({}) };
  defineTool({ ...about, execute: () => ({ temp: 5 }) });
  defineTool({ ...about, execute: () => Promise.resolve([1, null, { deep: ['x'] }]) });
  defineTool({ ...about, execute: (_, { update }) => update({ done: 0.5 }) ?? 42 });
  // @ts-expect-error -- a response is not data
  defineTool({ ...about, execute: () => fetch('http://localhost') });
  // @ts-expect-error -- nor is a function
  defineTool({ ...about, execute: () => ({ later: () => 5 }) });
});

test('a stoppable turn needs something that can stop it, and tools for its limits', () => {
  const parts = { history: [{ role: 'user', content: 'Hello' }], calls: createCallRecords() };
  const { signal } = new AbortController();
  const tools = { pay: tool({ inputSchema: z.object({}), execute: () => 'paid' }) };
  const mustFinish = { pay: { timeoutMs: 1_000 } };
  const typed = () => {
    using token = new CancellationToken();
    createStoppableTurn({ ...parts, tools, token, mustFinish });
    createStoppableTurn({ ...parts, tools, signal, token: undefined, mustFinish: undefined });
    createStoppableTurn({ ...parts, tools: {}, token, signal });
    // @ts-expect-error -- neither a token nor a signal
    createStoppableTurn({ ...parts, tools });
    // @ts-expect-error -- no such tool
    createStoppableTurn({ ...parts, tools, token, mustFinish: { pya: { timeoutMs: 1 } } });
    // @ts-expect-error -- no tools
    createStoppableTurn({ ...parts, tools: {}, token, mustFinish: { pay: { timeoutMs: 1 } } });
  };
  expectTypeOf(typed).returns.toBeVoid();
});

test("a tool's input comes from its schema, as it is after parsing", () => {
  const book = defineTool({
    name: 'book',
    description: 'Books a table',
    inputSchema: z.object({
      people: z.number(),
      at: z.string().transform((text) => new Date(text)),
      note: z.string().optional(),
    }),
    execute: (input, context) => {
      expectTypeOf(input).toEqualTypeOf<{ people: number; at: Date; note?: string | undefined }>();
      expectTypeOf(context.signal).toEqualTypeOf<AbortSignal>();
      expectTypeOf(context.token).toEqualTypeOf<CancellationToken>();
      return { content: 'Booked', details: { id: 1 } };
    },
    undo: (result) => expectTypeOf(result.input.people).toEqualTypeOf<number>() && undefined,
  });
  expectTypeOf(book).toEqualTypeOf<Tool<{ people: number; at: Date; note?: string | undefined }>>();
});

test('a tool returns text, content, plain data or a promise of them, and nothing else', () => {
  type Result = ReturnType<Tool['execute']>;
  expectTypeOf<string>().toExtend<Result>();
  expectTypeOf<Promise<string>>().toExtend<Result>();
  expectTypeOf<{ content: string; details: { id: number } }>().toExtend<Result>();
  expectTypeOf<number>().toExtend<Result>();
  expectTypeOf<Date>().not.toExtend<Result>();
  expectTypeOf<undefined>().not.toExtend<Result>();
});

test('a tool that must finish needs a bound', () => {
  type Base = {
    name: string;
    description: string;
    inputSchema: Tool<string>['inputSchema'];
    execute: (input: string) => string;
  };
  expectTypeOf<Base>().toExtend<ToolDefinition<string>>();
  expectTypeOf<Base & { whenCancelled: 'finish'; timeoutMs: number }>().toExtend<ToolDefinition<string>>();
  expectTypeOf<Base & { whenCancelled: 'finish' }>().not.toExtend<ToolDefinition<string>>();
});

test('the status of an outcome determines its fields', () => {
  const read = (outcome: Outcome): void => {
    expectTypeOf(outcome.status).toEqualTypeOf<'success' | 'failed' | 'cancelled'>();
    if (outcome.status === 'cancelled') {
      expectTypeOf(outcome.reason).toEqualTypeOf<CancelReason>();
      expectTypeOf(outcome.stop).toEqualTypeOf<StopReport>();
    } else if (outcome.status === 'failed') {
      expectTypeOf(outcome).toHaveProperty('error');
      expectTypeOf(outcome).not.toHaveProperty('stop');
    } else {
      expectTypeOf(outcome).not.toHaveProperty('reason');
      expectTypeOf(outcome).not.toHaveProperty('error');
    }
  };
  expectTypeOf(read).parameter(0).toEqualTypeOf<Awaited<ReturnType<Agent['run']>['outcome']>>();
});

test('the type of an event determines its fields', () => {
  type Of<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>;
  expectTypeOf<Of<'text'>>().toHaveProperty('text').toEqualTypeOf<string>();
  expectTypeOf<Of<'run-end'>>().toHaveProperty('outcome').toEqualTypeOf<Outcome>();
});

test('a guard returns what its function returns', () => {
  const guarded = (token: CancellationToken) => ({
    value: guard(() => 42, { name: 'number', token }),
    promise: guard(({ signal }) => Promise.resolve(signal.aborted), { name: 'promise', token }),
    thenable: guard((): PromiseLike<'done'> => Promise.resolve('done'), { name: 'thenable', token }),
  });
  type Guarded = ReturnType<typeof guarded>;
  expectTypeOf<Guarded['value']>().toEqualTypeOf<Promise<number>>();
  expectTypeOf<Guarded['promise']>().toEqualTypeOf<Promise<boolean>>();
  expectTypeOf<Guarded['thenable']>().toEqualTypeOf<Promise<'done'>>();
});

test('guarded AI SDK tools keep their own types', () => {
  const tools = { add: tool({ inputSchema: z.object({ a: z.number() }), execute: ({ a }) => a + 1 }) };
  using token = new CancellationToken();
  expectTypeOf(guardAiSdkTools(tools, { token })).toEqualTypeOf<typeof tools>();
});

test('asking whether an error is a cancel narrows it', () => {
  const findReason = (error: unknown) => (isCancelledError(error) ? error.reason : undefined);
  expectTypeOf(findReason).returns.toEqualTypeOf<CancelReason | undefined>();
  expectTypeOf(CancelledError).instance.toHaveProperty('reason').toEqualTypeOf<CancelReason>();
});

test('the result of a receipt determines its fields', () => {
  using token = new CancellationToken();
  const receipt = token.cancel();
  if (receipt.result !== 'too-late') expectTypeOf(receipt.reason).toEqualTypeOf<CancelReason>();
  const read = (stored: StoreCancelReceipt) => (stored.result === 'too-late' ? stored.status : undefined);
  expectTypeOf(read).returns.toEqualTypeOf<'success' | 'failed' | 'cancelled' | undefined>();
});

test('asking whether a status is final narrows it', () => {
  const findFinal = (status: TaskStatus) => (isFinalStatus(status) ? status : undefined);
  expectTypeOf(findFinal).returns.toEqualTypeOf<'success' | 'failed' | 'cancelled' | undefined>();
  expectTypeOf<TaskRecord['status']>().toEqualTypeOf<TaskStatus>();
});

test('an agent needs a model or a planner, and not both', () => {
  type Options = Parameters<typeof import('@whoa/core').createAgent>[0];
  type Parts = { model: Extract<Options, { planner?: undefined }>['model']; planner: NonNullable<Options['planner']> };
  expectTypeOf<{ name: string; model: Parts['model'] }>().toExtend<Options>();
  expectTypeOf<{ name: string; planner: Parts['planner'] }>().toExtend<Options>();
  expectTypeOf<{ name: string }>().not.toExtend<Options>();
  expectTypeOf<{ name: string; model: Parts['model']; planner: Parts['planner'] }>().not.toExtend<Options>();
});

test('the status of a reply determines its fields', () => {
  type Reply = Awaited<ReturnType<ReturnType<typeof createConversations>['processMessage']>>;
  expectTypeOf<'rejected'>().toExtend<Reply['status']>();
  expectTypeOf<'anything'>().not.toExtend<Reply['status']>();
});

/** The names of the optional fields that refuse an explicit `undefined`. */
type Refusing<Options> = {
  [Name in keyof Options]-?: object extends Pick<Options, Name>
    ? undefined extends Required<Options>[Name]
      ? never
      : Name
    : never;
}[keyof Options];

test('options of the core take `undefined` for what is left out', () => {
  expectTypeOf<Refusing<{ a?: 1; b?: 2 | undefined; c: 3 }>>().toEqualTypeOf<'a'>();
  expectTypeOf<Refusing<Parameters<typeof guard>[1]>>().toBeNever();
  expectTypeOf<Refusing<Parameters<typeof createAgent>[0]>>().toBeNever();
  expectTypeOf<Refusing<NonNullable<Parameters<Agent['run']>[1]>>>().toBeNever();
  expectTypeOf<Refusing<Parameters<typeof createRuntime>[0]>>().toBeNever();
  expectTypeOf<Refusing<Parameters<typeof createConversations>[0]>>().toBeNever();
  type Message = NonNullable<Parameters<ReturnType<typeof createConversations>['processMessage']>[2]>;
  expectTypeOf<Refusing<Message>>().toBeNever();
  expectTypeOf<Refusing<NonNullable<Parameters<CancellationToken['cancel']>[1]>>>().toBeNever();
  expectTypeOf<Refusing<Parameters<typeof createApprovals>[0]>>().toBeNever();
  expectTypeOf<Refusing<Parameters<typeof guardAiSdkTools>[1]>>().toBeNever();
});
