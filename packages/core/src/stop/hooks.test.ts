import { afterEach, beforeEach, expect, type MockInstance, test, vi } from 'vitest';
import { createHookDispatcher, createListener, type HookError, type Hooks, reportFailure } from './hooks.ts';

type Event = { type: 'a'; value: number } | { type: 'b' };
let warn: MockInstance<typeof process.emitWarning>;

beforeEach(() => {
  warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
});
afterEach(() => {
  warn.mockRestore();
});

const warned = () => warn.mock.calls.map(([warning]) => warning as Error);
const fails = () => {
  throw new Error('boom');
};

test('each hook receives its event, and `any` receives all, in every set of hooks', () => {
  const heard: string[] = [];
  const hooks: Hooks<Event> = {
    a: ({ value }) => heard.push(`a${value}`),
    any: ({ type }) => heard.push(`any ${type}`),
  };
  const emit = createHookDispatcher<Event>(hooks, undefined, { b: () => heard.push('b') });
  emit({ type: 'a', value: 1 });
  emit({ type: 'b' });
  expect(heard).toEqual(['a1', 'any a', 'any b', 'b']);
});

test('a hook that throws or rejects is reported to the hook-error hooks, by name', async () => {
  const errors: HookError[] = [];
  const emit = createHookDispatcher<Event>(
    { a: fails, any: () => Promise.reject(new Error('later')) },
    { 'hook-error': (error) => errors.push(error) },
  );
  emit({ type: 'a', value: 1 });
  await Promise.resolve();
  await Promise.resolve();
  expect(errors).toEqual([
    { type: 'hook-error', hook: 'a', error: new Error('boom') },
    { type: 'hook-error', hook: 'any', error: new Error('later') },
  ]);
  expect(warn).not.toHaveBeenCalled();
});

test('a hook’s error without a `hook-error` hook becomes a process warning that names it', () => {
  createHookDispatcher<Event>({ a: fails }, { b: () => {} })({ type: 'a', value: 1 });
  expect(warned()).toMatchObject([
    { message: "The 'a' hook failed; add a 'hook-error' hook", cause: { message: 'boom' } },
  ]);
});

test('a hook-error hook that fails itself is a process warning, once', () => {
  createHookDispatcher<Event>({ a: fails, 'hook-error': fails })({ type: 'a', value: 1 });
  expect(warned()).toMatchObject([{ message: "The 'hook-error' hook itself failed", cause: { message: 'boom' } }]);
});

test('hooks may return anything; a dispatch waits only for promises', () => {
  const emit = createHookDispatcher<Event>({
    a: () => JSON.parse('{"then":1}') as unknown,
    b: () => null,
    any: () => 'text',
  });
  emit({ type: 'a', value: 1 });
  emit({ type: 'b' });
  expect(warn).not.toHaveBeenCalled();
});

test('a function that failed is reported like a hook, or as a warning if no hook listens', () => {
  const heard: HookError[] = [];
  const error = new Error('boom');
  reportFailure({ 'hook-error': (event) => heard.push(event) }, 'onReply', error);
  expect(heard).toEqual([{ type: 'hook-error', hook: 'onReply', error }]);
  expect(warned()).toEqual([]);
  reportFailure(undefined, 'onReply', error);
  expect(warned()).toMatchObject([{ message: expect.stringContaining("'onReply'") as string, cause: error }]);
});

test('a listener that throws or rejects is reported under its name, and its caller sees no error', async () => {
  const heard: HookError[] = [];
  const hooks = { 'hook-error': (event: HookError) => heard.push(event) };
  const event: Event = { type: 'b' };
  const told: Event[] = [];
  createListener<Event>('onEvent', (one) => told.push(one), hooks)(event);
  createListener<Event>('onEvent', fails, hooks)(event);
  createListener<Event>('onEvent', () => Promise.reject(new Error('later')), hooks)(event);
  await Promise.resolve();
  await Promise.resolve();
  expect(told).toEqual([event]);
  expect(heard).toEqual([
    { type: 'hook-error', hook: 'onEvent', error: new Error('boom') },
    { type: 'hook-error', hook: 'onEvent', error: new Error('later') },
  ]);
});
