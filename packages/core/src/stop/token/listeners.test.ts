import { expect, test, vi } from 'vitest';
import { CancelListeners } from './listeners.ts';

const reason = { kind: 'user', at: 0 } as const;
const fail = (error: unknown): never => {
  throw error;
};

function setUp(count: number) {
  const listeners = new CancelListeners();
  const told: number[] = [];
  const subscriptions = Array.from({ length: count }, (_, i) => listeners.add(() => told.push(i)));
  const notify = () => listeners.notify('drain', reason, fail);
  return { listeners, told, subscriptions, notify };
}

test('listeners are called in the order they were added, once per level', () => {
  const { listeners, told, notify } = setUp(3);
  notify();
  notify();
  expect(told).toEqual([0, 1, 2]);
  listeners.notify('kill', reason, fail);
  notify();
  expect(told).toEqual([0, 1, 2, 0, 1, 2]);
});

test.each([0, 1, 2, 3])('listener %i of four can leave, twice, and the others stay', (gone) => {
  const { listeners, told, subscriptions, notify } = setUp(4);
  subscriptions[gone]![Symbol.dispose]();
  subscriptions[gone]![Symbol.dispose]();
  expect(listeners.size).toBe(3);
  notify();
  expect(told).toEqual([0, 1, 2, 3].filter((i) => i !== gone));
});

test('all can leave in any order', () => {
  const { listeners, subscriptions } = setUp(5);
  for (const i of [2, 0, 4, 1, 3]) subscriptions[i]![Symbol.dispose]();
  expect(listeners.size).toBe(0);
});

test('a listener may clear all listeners; those after it are not called', () => {
  const { listeners, told, notify } = setUp(1);
  listeners.add(() => listeners.clear());
  listeners.add(() => told.push(9));
  notify();
  expect(told).toEqual([0]);
  expect(listeners.size).toBe(0);
});

test('removing a listener after all were cleared does nothing', () => {
  const { listeners, subscriptions } = setUp(2);
  listeners.clear();
  listeners.add(() => {});
  subscriptions[0]![Symbol.dispose]();
  expect(listeners.size).toBe(1);
});

test('an error handler for listeners may throw too: that is a process warning, and the other listeners are called', () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const { listeners, told, notify } = setUp(1);
  const boom = new Error('boom');
  listeners.add(() => fail(boom));
  listeners.add(() => told.push(9));
  notify();
  expect(told).toEqual([0, 9]);
  expect(warn.mock.calls.map(([warning]) => warning)).toMatchObject([
    { message: expect.stringContaining('A cancel listener threw') as string, cause: boom },
  ]);
  warn.mockRestore();
});
