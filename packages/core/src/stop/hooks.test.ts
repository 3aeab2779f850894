import { afterEach, beforeEach, expect, type MockInstance, test, vi } from 'vitest';
import { createTeller, type HookError, type Hooks } from './hooks.ts';

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

test('each hook hears its event, and `any` hears all, in every set of hooks', () => {
  const heard: string[] = [];
  const hooks: Hooks<Event> = {
    a: ({ value }) => heard.push(`a${value}`),
    any: ({ type }) => heard.push(`any ${type}`),
  };
  const tell = createTeller<Event>(hooks, undefined, { b: () => heard.push('b') });
  tell({ type: 'a', value: 1 });
  tell({ type: 'b' });
  expect(heard).toEqual(['a1', 'any a', 'any b', 'b']);
});

test('a hook that throws or rejects is reported to the hook-error hooks, by name', async () => {
  const errors: HookError[] = [];
  const tell = createTeller<Event>(
    { a: fails, any: () => Promise.reject(new Error('later')) },
    { 'hook-error': (error) => errors.push(error) },
  );
  tell({ type: 'a', value: 1 });
  await Promise.resolve();
  await Promise.resolve();
  expect(errors).toEqual([
    { type: 'hook-error', hook: 'a', error: new Error('boom') },
    { type: 'hook-error', hook: 'any', error: new Error('later') },
  ]);
  expect(warn).not.toHaveBeenCalled();
});

test('with nobody to report to, it is a process warning that says what to add', () => {
  createTeller<Event>({ a: fails }, { b: () => {} })({ type: 'a', value: 1 });
  expect(warned()).toMatchObject([
    { message: "The 'a' hook failed; add a 'hook-error' hook", cause: { message: 'boom' } },
  ]);
});

test('a hook-error hook that fails itself is a process warning, once', () => {
  createTeller<Event>({ a: fails, 'hook-error': fails })({ type: 'a', value: 1 });
  expect(warned()).toMatchObject([{ message: "The 'hook-error' hook itself failed", cause: { message: 'boom' } }]);
});

test('hooks may return anything; only promises are waited for', () => {
  const tell = createTeller<Event>({ a: () => JSON.parse('{"then":1}') as unknown, b: () => null, any: () => 'text' });
  tell({ type: 'a', value: 1 });
  tell({ type: 'b' });
  expect(warn).not.toHaveBeenCalled();
});
