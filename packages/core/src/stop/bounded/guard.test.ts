import { expect, onTestFinished, test, vi } from 'vitest';
import { createVirtualWorld, flushMicrotasks } from '../../testing/virtual-world.ts';
import type { Clock } from '../clock.ts';
import { CallTimeoutError, isCancelledError } from '../errors.ts';
import { SettingsError } from '../settings.ts';
import { CancellationToken } from '../token/token.ts';
import { CleanupError } from './cleanup.ts';
import { guard } from './guard.ts';
import { createLateResults } from './late-results.ts';

function setUp() {
  const { clock } = createVirtualWorld();
  return { clock, token: new CancellationToken({ clock }), lateResults: createLateResults() };
}

/** Work that the test ends. */
function held<T>() {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  return { work: () => promise, resolve, reject };
}

async function settle(promise: Promise<unknown>): Promise<{ value?: unknown; error?: unknown }> {
  return promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
}

test('work that is not cancelled resolves and rejects unchanged', async () => {
  const { token } = setUp();
  expect(await guard(() => 7, { name: 'seven', token })).toBe(7);
  expect(await guard(() => Promise.resolve('later'), { name: 'later' })).toBe('later');
  const boom = new Error('boom');
  const { error } = await settle(guard(() => Promise.reject(boom), { name: 'boom', token }));
  expect(error).toBe(boom);
  const thrown = await settle(
    guard(
      () => {
        throw boom;
      },
      { name: 'boom', token },
    ),
  );
  expect(thrown.error).toBe(boom);
  expect(token.statistics).toEqual({ children: 0, listeners: 0 });
});

test('cancelled before it starts, it never runs', async () => {
  const { token } = setUp();
  token.cancel({ kind: 'user' });
  const work = vi.fn();
  const { error } = await settle(guard(work, { name: 'never', token }));
  expect(work).not.toHaveBeenCalled();
  expect(error).toMatchObject({ code: 'CANCELLED', partial: { state: 'not-started' }, reason: { kind: 'user' } });
});

test('a drain lets it finish', async () => {
  const { clock, token } = setUp();
  const { work, resolve } = held<string>();
  const result = settle(guard(work, { name: 'slow', token }));
  token.cancel();
  await clock.advance(9_000);
  resolve('done');
  expect(await result).toEqual({ value: 'done' });
});

test('work that fails during a drain has failed by itself: it was not asked to stop', async () => {
  const { token } = setUp();
  const { work, reject } = held<string>();
  const result = settle(guard(work, { name: 'slow', token }));
  token.cancel();
  const boom = new Error('boom');
  reject(boom);
  expect((await result).error).toBe(boom);
});

test('work that obeys its signal is interrupted, and its error is the cause', async () => {
  const { token } = setUp();
  const result = settle(
    guard(
      ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
        }),
      { name: 'obedient', token },
    ),
  );
  token.cancel({ kind: 'superseded' }, { mode: 'now' });
  const { error } = await result;
  expect(isCancelledError(error)).toBe(true);
  expect(error).toMatchObject({ partial: { state: 'interrupted' }, effect: undefined, cause: { name: 'AbortError' } });
});

test('work that throws something else after the abort is interrupted too', async () => {
  const { token } = setUp();
  const { work, reject } = held();
  const result = settle(guard(work, { name: 'clumsy', token }));
  token.cancel({}, { mode: 'now' });
  reject(new TypeError('x is undefined'));
  expect((await result).error).toMatchObject({ code: 'CANCELLED', partial: { state: 'interrupted' } });
});

test('abandoned work is in the late results under its key, or under a generated one', async () => {
  const { token, lateResults } = setUp();
  const deaf = () => new Promise<never>(() => {});
  const all = [
    settle(guard(deaf, { name: 'import', key: 'import/42', token, lateResults })),
    settle(guard(deaf, { name: 'one', token, lateResults })),
    settle(guard(deaf, { name: 'two', token, lateResults })),
  ];
  token.cancel({}, { mode: 'kill' });
  await Promise.all(all);
  const keys = new Map(lateResults.entries().map(({ name, key }) => [name, key]));
  expect(keys.get('import')).toBe('import/42');
  expect(keys.get('one')).toMatch(/^guard\//);
  expect(keys.get('two')).toMatch(/^guard\//);
  expect(keys.get('one')).not.toBe(keys.get('two'));
});

test('work that ignores its signal is abandoned exactly when the ladder ends; its late result is only recorded', async () => {
  const { clock, token, lateResults } = setUp();
  const { work, resolve } = held<string>();
  let ended: number | undefined;
  const start = clock.now();
  const result = settle(guard(work, { name: 'deaf', token, lateResults })).finally(() => (ended = clock.now()));
  token.cancel({ kind: 'user' });
  await clock.advance(11_999);
  expect(ended).toBeUndefined();
  await clock.advance(1);
  expect(ended).toBe(start + 12_000);
  expect((await result).error).toMatchObject({ partial: { state: 'unknown' }, effect: 'unknown' });
  expect(lateResults.entries()).toMatchObject([
    { name: 'deaf', reason: { kind: 'user' }, abandonedAt: start + 12_000 },
  ]);
  expect(lateResults.entries()[0]).not.toHaveProperty('late');
  await clock.advance(500);
  resolve('too late');
  await flushMicrotasks();
  expect(lateResults.entries()[0]?.late).toEqual({ at: start + 12_500, state: 'finished', value: 'too late' });
});

test('work that ends by itself leaves no late result', async () => {
  const { token, lateResults } = setUp();
  expect(await guard(() => 7, { name: 'seven', token, lateResults })).toBe(7);
  expect(lateResults.entries()).toEqual([]);
});

test('a late result that cannot be recorded is a process warning with its error, and nothing else is', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const full = new Error('disk full');
  const abandon = vi.fn().mockImplementationOnce(() => {
    throw full;
  });
  const lateResults = { ...createLateResults(), abandon };
  for (const warnings of [[{ message: 'Late results failed', cause: full }], []]) {
    const { token } = setUp();
    const { work, resolve } = held<string>();
    const result = settle(guard(work, { name: 'deaf', token, lateResults }));
    token.cancel({}, { mode: 'kill' });
    expect((await result).error).toMatchObject({ code: 'CANCELLED', partial: { state: 'unknown' } });
    resolve('late');
    await flushMicrotasks();
    expect(warn.mock.calls.map(([warning]) => warning)).toMatchObject(warnings);
    warn.mockClear();
  }
  warn.mockRestore();
});

test('a late failure is recorded, too, and is not an unhandled rejection', async () => {
  const { token, lateResults } = setUp();
  const { work, reject } = held();
  const result = settle(guard(work, { name: 'deaf', token, lateResults }));
  token.cancel({}, { mode: 'kill' });
  await result;
  reject('no');
  await flushMicrotasks();
  expect(lateResults.entries()[0]?.late).toMatchObject({ state: 'failed', error: 'no' });
});

test('a time-out asks it to stop, and abandons it 2 s later', async () => {
  const { clock, token, lateResults } = setUp();
  const { work } = held();
  let aborted: number | undefined;
  const start = clock.now();
  const result = settle(
    guard(
      ({ signal }) => {
        signal.addEventListener('abort', () => (aborted = clock.now()), { once: true });
        return work();
      },
      { name: 'slow', token, timeoutMs: 300, lateResults },
    ),
  );
  await clock.advance(2_300);
  expect(aborted).toBe(start + 300);
  const { error } = await result;
  expect(error).toBeInstanceOf(CallTimeoutError);
  expect(error).toMatchObject({
    code: 'CALL_TIMEOUT',
    state: 'unknown',
    message: expect.stringContaining('slow did not end within 300 ms') as string,
  });
  expect(lateResults.entries()).toMatchObject([{ name: 'slow', reason: { kind: 'deadline' } }]);
  expect(token.isCancelled).toBe(false);
  expect(clock.pending).toBe(0);
});

test.each([
  [0, 300],
  [50, 350],
  [undefined, 2_300],
])('a function that ignores its signal is abandoned `graceMs` (%s) after its timeout', async (graceMs, endsAt) => {
  const { clock, token } = setUp();
  const start = clock.now();
  const { work } = held();
  const limits = { timeoutMs: 300, ...(graceMs !== undefined && { graceMs }) };
  const result = settle(guard(work, { name: 'slow', token, ...limits })).then((end) => ({ ...end, at: clock.now() }));
  await clock.advance(3_000);
  const { error, at } = await result;
  expect(error).toMatchObject({ code: 'CALL_TIMEOUT', state: 'unknown' });
  expect(at - start).toBe(endsAt);
  expect(clock.pending).toBe(0);
});

test('`graceMs` does not lengthen a cancel, and finish work has none', async () => {
  const { clock, token } = setUp();
  const { work } = held();
  const result = settle(guard(work, { name: 'slow', token, timeoutMs: 300, graceMs: 60_000 }));
  token.cancel({ kind: 'user' }, { mode: 'now' });
  await clock.advance(2_000);
  expect((await result).error).toMatchObject({ code: 'CANCELLED' });
  const given = { name: 'pay', whenCancelled: 'finish', timeoutMs: 100, graceMs: 10 } as const;
  await expect(guard(work, given)).rejects.toThrow(
    "graceMs: 'pay' finishes when cancelled, and is abandoned at timeoutMs",
  );
});

test('a timeout with its own reason is not mistaken for the cancel that came before it', async () => {
  const { clock, token } = setUp();
  const { work } = held();
  const result = settle(guard(work, { name: 'slow', token, timeoutMs: 100 }));
  token.cancel({ kind: 'user' }, { mode: { drainMs: 5_000, abortMs: 0 } });
  await clock.advance(5_000);
  expect((await result).error).toMatchObject({ code: 'CANCELLED', reason: { kind: 'user' } });
});

test('finish work is never interrupted: its signal does not fire at kill, and `onWait` reports that the cancel must wait', async () => {
  const { clock, token } = setUp();
  const { work, resolve } = held<string>();
  const waits: string[] = [];
  let signal: AbortSignal | undefined;
  const result = settle(
    guard(
      (context) => {
        signal = context.signal;
        return work();
      },
      { name: 'pay', token, whenCancelled: 'finish', timeoutMs: 60_000, onWait: (level) => waits.push(level) },
    ),
  );
  token.cancel({}, { mode: 'now' });
  await clock.advance(30_000);
  expect(token.level).toBe('kill');
  expect(signal?.aborted).toBe(false);
  expect(waits).toEqual(['abort']);
  resolve('paid');
  expect(await result).toEqual({ value: 'paid' });
  expect(clock.pending).toBe(0);
});

test('only a cancel that has to wait calls `onWait`', async () => {
  const errors: unknown[] = [];
  const token = new CancellationToken({
    clock: createVirtualWorld().clock,
    onListenerError: (error) => errors.push(error),
  });
  const interrupted = held();
  const finished = held<string>();
  const onWait = vi.fn();
  const results = [
    settle(guard(interrupted.work, { name: 'read', token, onWait })),
    settle(guard(finished.work, { name: 'pay', token, whenCancelled: 'finish', timeoutMs: 60_000 })),
  ];
  token.cancel({}, { mode: 'now' });
  interrupted.reject(new Error('stopped'));
  finished.resolve('paid');
  expect(await Promise.all(results)).toMatchObject([{ error: { code: 'CANCELLED' } }, { value: 'paid' }]);
  expect(onWait).not.toHaveBeenCalled();
  expect(errors).toEqual([]);
  token[Symbol.dispose]();
});

test('the error that work threw after its timeout is the cause', async () => {
  const { clock, token } = setUp();
  const { work, reject } = held();
  const result = settle(guard(work, { name: 'slow', token, timeoutMs: 300 }));
  await clock.advance(300);
  const failed = new Error('ROLLBACK FAILED');
  reject(failed);
  expect((await result).error).toMatchObject({ code: 'CALL_TIMEOUT', state: 'interrupted', cause: failed });
});

test('a guard without a function is rejected', async () => {
  const nothing = undefined as unknown as () => void;
  await expect(guard(nothing, { name: 'x' })).rejects.toThrow('execute: expected a function');
});

test('finish work that outlives its bound is unknown', async () => {
  const { clock, token, lateResults } = setUp();
  const { work } = held();
  const result = settle(guard(work, { name: 'pay', token, whenCancelled: 'finish', timeoutMs: 1_000, lateResults }));
  await clock.advance(1_000);
  expect((await result).error).toBeInstanceOf(CallTimeoutError);
  expect(lateResults.entries()).toHaveLength(1);
});

test('finish work that fails has failed, cancelled or not', async () => {
  const { token } = setUp();
  const { work, reject } = held();
  const result = settle(guard(work, { name: 'pay', token, whenCancelled: 'finish', timeoutMs: 1_000 }));
  token.cancel({}, { mode: 'now' });
  const declined = new Error('declined');
  reject(declined);
  expect((await result).error).toBe(declined);
});

test('finish work needs a bound, and a sensible one', async () => {
  const unbounded = await settle(guard(() => 1, { name: 'pay', whenCancelled: 'finish' }));
  expect(unbounded.error).toMatchObject({ message: expect.stringContaining("timeoutMs: 'pay' finishes") as string });
  for (const timeoutMs of [0, 600_001, Number.NaN]) {
    const { error } = await settle(guard(() => 1, { name: 'pay', whenCancelled: 'finish', timeoutMs }));
    expect(error).toBeInstanceOf(SettingsError);
    expect(error).toMatchObject({ field: 'timeoutMs' });
  }
});

test('work that cannot be bounded, because the clock fails, does not begin', async () => {
  const broken = new Error('no timers');
  const { clock: whole } = createVirtualWorld();
  const setTimer = vi.fn<Clock['setTimer']>((ms, callback) => whole.setTimer(ms, callback));
  setTimer.mockImplementationOnce(() => {
    throw broken;
  });
  const clock: Clock = { now: () => whole.now(), setTimer };
  const work = vi.fn();
  const token = new CancellationToken({ clock });
  expect((await settle(guard(work, { name: 'x', token, timeoutMs: 5 }))).error).toBe(broken);
  expect(work).not.toHaveBeenCalled();
});

test('work that cancels itself was cancelled, and has not taken too long', async () => {
  const { token } = setUp();
  const work = guard(
    ({ token: own }) => {
      own.cancel('found it elsewhere', { mode: 'now' });
      return Promise.reject(new Error('stopped'));
    },
    { name: 'search', token },
  );
  expect((await settle(work)).error).toMatchObject({
    code: 'CANCELLED',
    partial: { state: 'interrupted' },
    reason: { message: 'found it elsewhere' },
  });
});

test('a plain signal means now', async () => {
  const controller = new AbortController();
  const result = settle(
    guard(({ token }) => new Promise((_, reject) => token.onCancel(reject)), { name: 'x', signal: controller.signal }),
  );
  controller.abort();
  expect((await result).error).toMatchObject({ code: 'CANCELLED', partial: { state: 'interrupted' } });
});

test('cleanups run in reverse when work ends, however it ends, and are not cut by the cancel', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  for (const ending of ['value', 'error', 'kill'] as const) {
    const { clock, token } = setUp();
    const { work, resolve, reject } = held<string>();
    const order: string[] = [];
    const result = settle(
      guard(
        ({ defer }) => {
          defer(() => order.push('first'));
          defer(async ({ signal }) => {
            await Promise.resolve();
            order.push(signal.aborted ? 'cut' : 'second');
          });
          return work();
        },
        { name: 'tidy', token },
      ),
    );
    if (ending === 'value') resolve('x');
    if (ending === 'error') reject(new Error('x'));
    if (ending === 'kill') token.cancel({}, { mode: 'kill' });
    await result;
    expect(order, ending).toEqual(['second', 'first']);
    // They ended well, so nothing is reported and nothing waits for them.
    expect(warn).not.toHaveBeenCalled();
    expect(clock.pending).toBe(0);
  }
  warn.mockRestore();
});

test("a cleanup's signal fires when its time is over, and names the owner", async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const { clock, token } = setUp();
  let heard: AbortSignal | undefined;
  const result = guard(
    ({ defer }) =>
      defer(({ signal }) => {
        heard = signal;
        return new Promise(() => {});
      }),
    { name: 'untidy', token, cleanupTimeoutMs: 500 },
  );
  await clock.advance(499);
  expect(heard?.aborted).toBe(false);
  await clock.advance(1);
  await result;
  expect(heard?.reason).toMatchObject({
    cause: { kind: 'deadline', message: 'cleanup of untidy took longer than 500 ms' },
  });
  warn.mockRestore();
});

test('killed work that settles before the event loop turns is not abandoned, no matter how many promises that takes', async () => {
  const { token, lateResults } = setUp();
  const working = settle(
    guard(
      async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        for (let i = 0; i < 10_000; i++) await Promise.resolve();
        throw new Error('stopped');
      },
      { name: 'slow to stop', token, lateResults },
    ),
  );
  token.cancel({}, { mode: 'kill' });
  expect((await working).error).toMatchObject({ cause: { message: 'stopped' } });
  expect(lateResults.entries()).toEqual([]);
});

test('killed work that does not settle is abandoned as soon as the event loop turns, even if timers are faked', async () => {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const { token, lateResults } = setUp();
  const working = settle(guard(() => new Promise(() => {}), { name: 'deaf', token, lateResults }));
  token.cancel({}, { mode: 'kill' });
  expect(isCancelledError((await working).error)).toBe(true);
  expect(lateResults.entries()).toMatchObject([{ name: 'deaf' }]);
});

test('work that ends while its cleanup runs after a kill is not called unknown', async () => {
  const { token } = setUp();
  const { work, reject } = held();
  const result = settle(
    guard(
      ({ defer }) => {
        defer(() => reject(new Error('killed')));
        return work();
      },
      { name: 'process', token },
    ),
  );
  token.cancel({}, { mode: 'kill' });
  expect((await result).error).toMatchObject({ partial: { state: 'interrupted' } });
});

test('a cleanup that fails or hangs is reported, bounded, and keeps the others from nothing', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const { clock, token } = setUp();
  const last = vi.fn();
  const start = clock.now();
  let ended = 0;
  const result = guard(
    ({ defer }) => {
      defer(last);
      defer(() => new Promise(() => {}));
      defer(() => {
        throw new Error('broken');
      });
      return 'value';
    },
    { name: 'untidy', token },
  ).finally(() => (ended = clock.now()));
  await clock.advance(2_000);
  expect(await result).toBe('value');
  expect(ended).toBe(start + 2_000);
  expect(last).toHaveBeenCalledTimes(1);
  const errors = warn.mock.calls.map(([error]) => error as CleanupError);
  expect(errors.map(({ message }) => message)).toEqual([
    'A cleanup failed',
    'The cleanup of untidy did not end within 2000 ms',
  ]);
  expect(errors[0]).toMatchObject({ name: 'CleanupError', code: 'CLEANUP_FAILED', cause: { message: 'broken' } });
  expect(errors[0]).toBeInstanceOf(CleanupError);
  warn.mockRestore();
});

test('abandoned work that registers a cleanup late has it run immediately', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const { token } = setUp();
  const { work, resolve } = held<undefined>();
  const cleanup = vi.fn();
  const result = settle(
    guard(
      async ({ defer }) => {
        await work();
        defer(cleanup);
        defer(() => Promise.reject(new Error('late')));
      },
      { name: 'late', token },
    ),
  );
  token.cancel({}, { mode: 'kill' });
  await result;
  resolve(undefined);
  await flushMicrotasks();
  expect(cleanup.mock.calls[0]?.[0]).toMatchObject({ signal: { aborted: true } });
  expect(warn).toHaveBeenCalledTimes(1);
  warn.mockRestore();
});

test('late results forget the returned first, then the oldest', async () => {
  const lateResults = createLateResults({ maxEntries: 2 });
  const enter = (key: string) =>
    lateResults.abandon({ key, name: key, reason: { kind: 'user', at: 0 }, abandonedAt: 0 });
  enter('a');
  enter('b');
  lateResults.returned('b', { at: 1, state: 'finished', value: 1 });
  lateResults.returned('nobody', { at: 1, state: 'finished', value: 1 });
  enter('c');
  expect(lateResults.entries().map(({ key }) => key)).toEqual(['a', 'c']);
  enter('d');
  expect(lateResults.entries().map(({ key }) => key)).toEqual(['c', 'd']);
  await flushMicrotasks();
});
