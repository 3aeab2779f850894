import { EventEmitter } from 'node:events';
import { expect, onTestFinished, test, vi } from 'vitest';
import { listenForDrain } from './drain.ts';

function start(drainMs = 1_000) {
  const signals = new EventEmitter();
  const onDrain = vi.fn();
  const own = <T extends Disposable | AsyncDisposable>(thing: T): T => {
    onTestFinished(() => (thing as Disposable)[Symbol.dispose]());
    return thing;
  };
  const given = { drainMs, onDrain, signals: signals as unknown as NodeJS.Process };
  return { drain: listenForDrain(own, given), onDrain, send: (signal: string) => signals.emit(signal, signal) };
}

test('a signal before the server listens closes it without a drain', async () => {
  const { drain, onDrain, send } = start();
  send('SIGTERM');
  await drain.untilClosing();
  expect(onDrain).not.toHaveBeenCalled();
  expect(drain.isDraining()).toBe(true);
});

test('a server drains after SIGTERM, and closes when the time is over', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { drain, onDrain, send } = start();
  const closing = vi.fn();
  const closed = drain.untilClosing().then(closing);
  expect(drain.isDraining()).toBe(false);
  send('SIGTERM');
  expect(onDrain).toHaveBeenCalledOnce();
  expect(drain.isDraining()).toBe(true);
  await vi.advanceTimersByTimeAsync(999);
  expect(closing).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  await closed;
});

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'])('%s during the drain ends the wait', async (signal) => {
  const { drain, send } = start(3_600_000);
  const closed = drain.untilClosing();
  send('SIGTERM');
  send(signal);
  await closed;
});

test.each([
  ['SIGINT', 1_000],
  ['SIGHUP', 1_000],
  ['SIGTERM', 0],
] as const)('%s closes a server with a drain of %i ms without one', async (signal, drainMs) => {
  const { drain, onDrain, send } = start(drainMs);
  const closed = drain.untilClosing();
  send(signal);
  await closed;
  expect(onDrain).not.toHaveBeenCalled();
});

test('a signal while the server closes exits immediately', async () => {
  const exit = vi.spyOn(process, 'exit').mockReturnValue(undefined as never);
  onTestFinished(() => exit.mockRestore());
  const { drain, send } = start();
  const closed = drain.untilClosing();
  for (const signal of ['SIGTERM', 'SIGTERM', 'SIGTERM']) send(signal);
  await closed;
  expect(exit).toHaveBeenCalledExactlyOnceWith(130);
});
