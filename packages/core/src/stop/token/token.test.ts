import { getEventListeners } from 'node:events';
import { expect, test, vi } from 'vitest';
import { createVirtualWorld } from '../../testing/virtual-world.ts';
import { NEVER } from '../clock.ts';
import { CancelledError, isCancelledError } from '../errors.ts';
import type { StopLevel } from './level.ts';
import { CancellationToken, type TokenOptions } from './token.ts';

function setUp(options: TokenOptions = {}) {
  const { clock } = createVirtualWorld();
  const token = new CancellationToken({ name: 'root', clock, ...options });
  const levels: StopLevel[] = [];
  token.onCancel((level) => levels.push(level));
  return { clock, token, levels };
}

test('a new token is not cancelled', () => {
  const { token } = setUp();
  expect(token).toMatchObject({ isCancelled: false, level: undefined, reason: undefined, undo: false });
  expect(() => token.throwIfCancelled()).not.toThrow();
  expect(token.signal.aborted).toBe(false);
});

test('cancel() alone climbs the graceful ladder: drain, 10 s, abort, 2 s, kill', async () => {
  const { clock, token, levels } = setUp();
  const at = clock.now();
  const receipt = token.cancel({ by: 'anna' });
  expect(receipt).toEqual({
    result: 'accepted',
    level: 'drain',
    reason: { kind: 'user', by: 'anna', at },
    killAt: at + 12_000,
  });
  expect(token.isCancelled).toBe(true);
  await clock.advance(9_999);
  expect(levels).toEqual(['drain']);
  await clock.advance(1);
  expect(levels).toEqual(['drain', 'abort']);
  await clock.advance(1_999);
  expect(token.level).toBe('abort');
  await clock.advance(1);
  expect(levels).toEqual(['drain', 'abort', 'kill']);
  expect(clock.pending).toBe(0);
});

test('the error of the signal has the reason and no stack; other errors keep theirs', () => {
  const { stackTraceLimit } = Error;
  using token = new CancellationToken();
  token.cancel({ kind: 'user' }, { mode: 'now' });
  const error = token.signal.reason as Error;
  expect(error.stack ?? '').not.toContain('\n    at ');
  expect(Error.stackTraceLimit).toBe(stackTraceLimit);
  expect(new Error('x').stack).toContain('\n    at ');
});

test('the signal fires at abort, not at drain, and carries the reason as the cause of an AbortError', async () => {
  const { clock, token } = setUp();
  const { signal } = token;
  token.cancel({ kind: 'superseded', message: 'secret words' });
  expect(signal.aborted).toBe(false);
  await clock.advance(10_000);
  expect(signal.aborted).toBe(true);
  const error = signal.reason as DOMException;
  expect(error).toBeInstanceOf(DOMException);
  expect(error.name).toBe('AbortError');
  expect(error.message).toBe('Cancelled (superseded)');
  expect(error.cause).toBe(token.reason);
});

test('a signal asked for after the abort is aborted, and it is always the same signal', () => {
  const { token } = setUp();
  token.cancel({}, { mode: 'now' });
  expect(token.signal.aborted).toBe(true);
  expect(token.signal).toBe(token.signal);
});

test('a ladder may be given, and starts at the first level it names', async () => {
  const drainOnly = setUp();
  drainOnly.token.cancel({}, { mode: { drainMs: 5 } });
  await drainOnly.clock.advance(5);
  expect(drainOnly.levels).toEqual(['drain', 'abort', 'kill']);
  const abortOnly = setUp();
  abortOnly.token.cancel({}, { mode: { abortMs: 7 } });
  expect(abortOnly.levels).toEqual(['abort']);
  await abortOnly.clock.advance(7);
  expect(abortOnly.levels).toEqual(['abort', 'kill']);
  const killed = setUp();
  expect(killed.token.cancel({}, { mode: 'kill' })).toMatchObject({ level: 'kill', killAt: killed.clock.now() });
  expect(killed.clock.pending).toBe(0);
});

test('a ladder takes its time and no more where timers are faked and the time is not', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    using token = new CancellationToken();
    token.onCancel(() => {});
    token.cancel();
    vi.advanceTimersByTime(10_000);
    expect(token.level).toBe('abort');
    expect(token.cancel({}, { mode: 'now' })).toMatchObject({ result: 'unchanged' });
    vi.advanceTimersByTime(1_900);
    expect(token.level).toBe('abort');
    vi.advanceTimersByTime(100);
    expect(token.level).toBe('kill');
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

test('a timer that fires a moment early does not make the ladder shorter', () => {
  let now = 1_000;
  const timers: [ms: number, callback: () => void][] = [];
  const setTimer = (...timer: (typeof timers)[0]): Disposable => {
    timers.push(timer);
    return NEVER;
  };
  using token = new CancellationToken({ clock: { now: () => now, setTimer } });
  token.cancel({}, { mode: { drainMs: 50, abortMs: 50 } });
  now += 49.25;
  timers[0]![1]();
  expect(token.level).toBe('abort');
  expect(timers.map(([ms]) => ms)).toEqual([50, 50.75]);
});

test('a bad ladder is rejected immediately and cancels nothing', () => {
  const { token } = setUp();
  expect(() => token.cancel({}, { mode: { drainMs: -1 } })).toThrow('drainMs: expected 0 to 3600000 ms, got -1');
  expect(() => token.cancel({}, { mode: { abortMs: Number.NaN } })).toThrow('abortMs');
  expect(() => token.cancel({}, { mode: { abortMs: 3_600_001 } })).toThrow('abortMs');
  expect(() => token.cancel({}, { mode: 'softly' as 'now' })).toThrow(
    "mode: expected 'graceful', 'now', 'kill' or { drainMs, abortMs }, got \"softly\"",
  );
  expect(token.isCancelled).toBe(false);
  expect(token.cancel({}, { mode: { abortMs: 3_600_000, drainMs: 0 } }).result).toBe('accepted');
});

test('the first reason wins, whatever comes later', () => {
  const { token } = setUp();
  token.cancel({ kind: 'user', message: 'first' });
  const second = token.cancel({ kind: 'shutdown', message: 'second' }, { mode: 'kill' });
  expect(second).toMatchObject({ result: 'escalated', level: 'kill', reason: { message: 'first' } });
  expect(token.reason).toMatchObject({ kind: 'user', message: 'first' });
});

test('many rapid cancellations are one cancellation', () => {
  const { token, levels } = setUp();
  const answers = Array.from({ length: 100 }, (_, i) => token.cancel({ message: `${i}` }).result);
  expect(answers).toEqual(['accepted', ...Array.from({ length: 99 }, () => 'unchanged')]);
  expect(levels).toEqual(['drain']);
});

test('a later cancel may raise the level or hurry the ladder, never slow it down', async () => {
  const { clock, token, levels } = setUp();
  const start = clock.now();
  token.cancel();
  await clock.advance(5_000);
  expect(token.cancel({}, { mode: { drainMs: 60_000, abortMs: 60_000 } })).toMatchObject({
    result: 'unchanged',
    killAt: start + 12_000,
  });
  expect(token.cancel({}, { mode: { drainMs: 1_000, abortMs: 60_000 } })).toMatchObject({ result: 'escalated' });
  expect(levels).toEqual(['drain']);
  await clock.advance(1_000);
  expect(levels).toEqual(['drain', 'abort']);
  // The kill of the first ladder still holds, though the second would have waited a minute.
  await clock.advance(6_000);
  expect(levels).toEqual(['drain', 'abort', 'kill']);
  expect(token.cancel({}, { mode: 'now' })).toMatchObject({ result: 'unchanged', level: 'kill' });
});

test('only the kill of a later ladder may be earlier', async () => {
  const { clock, token } = setUp();
  token.cancel({}, { mode: { drainMs: 10, abortMs: 100 } });
  expect(token.cancel({}, { mode: { drainMs: 20, abortMs: 10 } }).result).toBe('escalated');
  await clock.advance(29);
  expect(token.level).toBe('abort');
  await clock.advance(1);
  expect(token.level).toBe('kill');
});

test('asking for undo as well is an escalation, and it reaches the tree below', () => {
  const { token } = setUp();
  const child = token.child();
  token.cancel();
  expect(child.undo).toBe(false);
  expect(token.cancel({}, { undo: true }).result).toBe('escalated');
  expect(token.undo).toBe(true);
  expect(child.undo).toBe(true);
  expect(token.cancel({}, { undo: true }).result).toBe('unchanged');
  expect(token.child().undo).toBe(true);
});

test('cancelling after the end is a no-op that reports it', () => {
  const { token, levels } = setUp();
  token[Symbol.dispose]();
  expect(token.cancel({}, { mode: 'kill' })).toEqual({ result: 'too-late' });
  expect(token.isCancelled).toBe(false);
  expect(levels).toEqual([]);
  token[Symbol.dispose]();
});

test('a cancelled token that has ended stays cancelled and takes no more', () => {
  const { clock, token } = setUp();
  token.cancel();
  token[Symbol.dispose]();
  expect(clock.pending).toBe(0);
  expect(token).toMatchObject({ isCancelled: true, level: 'drain' });
  expect(token.cancel({}, { mode: 'kill' })).toEqual({ result: 'too-late' });
  expect(token.level).toBe('drain');
});

test('throwIfCancelled throws a CancelledError with code and reason', () => {
  const { token } = setUp();
  token.cancel({ kind: 'deadline', message: 'too slow' });
  const error = catchError(() => token.throwIfCancelled());
  expect(isCancelledError(error)).toBe(true);
  expect(error).toBeInstanceOf(CancelledError);
  expect(error).toMatchObject({ name: 'CancelledError', code: 'CANCELLED', message: 'Cancelled (deadline: too slow)' });
  expect((error as CancelledError).reason).toBe(token.reason);
});

test('a listener added late is called immediately, once, with the level reached', () => {
  const { token } = setUp();
  token.cancel({}, { mode: 'now' });
  const late = vi.fn();
  token.onCancel(late);
  expect(late.mock.calls).toEqual([['abort', token.reason]]);
  token.cancel({}, { mode: 'kill' });
  expect(late.mock.calls.map(([level]) => level as string)).toEqual(['abort', 'kill']);
});

test('a disposed listener is not called, even when it is disposed by the listener before it', () => {
  const { token } = setUp();
  const never = vi.fn();
  token.onCancel(() => second[Symbol.dispose]());
  const second = token.onCancel(never);
  token.cancel();
  expect(never).not.toHaveBeenCalled();
});

test('a listener on an ended token is called with what happened and is not kept', () => {
  const { token } = setUp();
  token.cancel();
  token[Symbol.dispose]();
  const late = vi.fn();
  token.onCancel(late);
  expect(late).toHaveBeenCalledTimes(1);
  expect(token.statistics).toEqual({ children: 0, listeners: 0 });
});

test('a throwing listener affects nothing else and is reported', () => {
  const errors: unknown[] = [];
  const { token, levels } = setUp({ onListenerError: (error) => errors.push(error) });
  const boom = new Error('boom');
  token.onCancel(() => {
    throw boom;
  });
  const after = vi.fn();
  token.child().onCancel(() => {
    throw boom;
  });
  token.onCancel(after);
  expect(token.cancel().result).toBe('accepted');
  expect(levels).toEqual(['drain']);
  expect(after).toHaveBeenCalledTimes(1);
  expect(errors).toEqual([boom, boom]);
});

test('without an error handler, a throwing listener becomes a process warning', () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const boom = new Error('boom');
  const token = new CancellationToken();
  token.onCancel(() => {
    throw boom;
  });
  token.cancel({}, { mode: 'kill' });
  expect(warn.mock.calls[0]?.[0]).toMatchObject({
    message: expect.stringContaining('A cancel listener threw') as string,
    cause: boom,
  });
  warn.mockRestore();
});

test('a listener that raises the level is never called with the lower one afterwards, nor are the others', () => {
  const { token } = setUp();
  const first: StopLevel[] = [];
  const second: StopLevel[] = [];
  token.onCancel((level) => {
    first.push(level);
    token.cancel({}, { mode: 'kill' });
  });
  token.onCancel((level) => second.push(level));
  token.cancel();
  expect(first).toEqual(['drain', 'kill']);
  expect(second).toEqual(['kill']);
});

test('a listener may end the token', () => {
  const { clock, token } = setUp();
  token.onCancel(() => token[Symbol.dispose]());
  expect(token.cancel().result).toBe('accepted');
  expect(clock.pending).toBe(0);
});

test('cancelling a parent reaches every descendant with the same reason and nothing else', () => {
  const { token: root } = setUp();
  const [left, right] = [root.child('left'), root.child('right')];
  const [leaf, other] = [left.child('leaf'), left.child('other')];
  left.cancel({ kind: 'user' });
  expect([left, leaf, other].map((token) => token.isCancelled)).toEqual([true, true, true]);
  expect(leaf.reason).toBe(left.reason);
  expect([root, right].map((token) => token.isCancelled)).toEqual([false, false]);
});

test('a half-cancelled tree is never visible', () => {
  const { token: root } = setUp();
  const children = Array.from({ length: 5 }, () => root.child());
  const seen: boolean[][] = [];
  root.onCancel(() => seen.push(children.map((child) => child.isCancelled)));
  for (const child of children) child.onCancel(() => seen.push(children.map((one) => one.isCancelled)));
  root.cancel();
  expect(seen).toHaveLength(6);
  expect(seen.flat().every(Boolean)).toBe(true);
});

test('a child of a cancelled token is born cancelled, at the level reached', async () => {
  const { clock, token } = setUp();
  token.cancel({ message: 'why' });
  const early = token.child();
  expect(early).toMatchObject({ isCancelled: true, level: 'drain', reason: { message: 'why' } });
  await clock.advance(10_000);
  expect(token.child().level).toBe('abort');
  expect(early.level).toBe('abort');
});

test('a child cancelled on its own keeps its own reason when the parent follows', () => {
  const { token } = setUp();
  const child = token.child();
  child.cancel({ kind: 'deadline' });
  token.cancel({ kind: 'user' }, { mode: 'kill' });
  expect(child).toMatchObject({ level: 'kill', reason: { kind: 'deadline' } });
  expect(token.reason?.kind).toBe('user');
});

test("a receipt of a child knows its parent's ladder", () => {
  const { clock, token } = setUp();
  const child = token.child();
  token.cancel({}, { mode: 'now' });
  expect(child.cancel({}, { mode: { abortMs: 5_000 } })).toMatchObject({
    result: 'unchanged',
    killAt: clock.now() + 2_000,
  });
  expect(child.cancel({}, { mode: { abortMs: 1_000 } })).toMatchObject({
    result: 'escalated',
    killAt: clock.now() + 1_000,
  });
});

test('a kill from above ends the ladder of a child', async () => {
  const { clock, token } = setUp();
  const child = token.child();
  child.cancel();
  expect(clock.pending).toBe(1);
  token.cancel({}, { mode: 'kill' });
  expect(clock.pending).toBe(0);
  await clock.advance(60_000);
  expect(child.level).toBe('kill');
});

test('a token that inherits only abort ignores a drain', async () => {
  const { clock, token } = setUp();
  const call = token.child({ inheritFrom: 'abort' });
  const grandchild = call.child();
  const levels: StopLevel[] = [];
  call.onCancel((level) => levels.push(level));
  token.cancel();
  expect(call.isCancelled).toBe(false);
  expect(token.child({ inheritFrom: 'abort' }).isCancelled).toBe(false);
  expect(grandchild.isCancelled).toBe(false);
  await clock.advance(10_000);
  expect(levels).toEqual(['abort']);
  expect(grandchild.level).toBe('abort');
});

test("a drain that is sat out does not count in a receipt's deadlines", () => {
  const { clock, token } = setUp();
  const call = token.child({ inheritFrom: 'kill' });
  token.cancel({}, { mode: 'now' });
  expect(call.cancel({}, { mode: { drainMs: 1_000, abortMs: 5_000 } })).toMatchObject({
    result: 'accepted',
    level: 'drain',
    killAt: clock.now() + 2_000,
  });
});

test('a token with a minimum level receives a drain as an abort, and so do its children', async () => {
  const { clock, token } = setUp();
  const words = token.child({ minimumLevel: 'abort' });
  const below = words.child();
  token.cancel();
  expect(words.level).toBe('abort');
  expect(below.level).toBe('abort');
  expect(words.signal.aborted).toBe(true);
  expect(token.child({ minimumLevel: 'abort' }).level).toBe('abort');
  await clock.advance(12_000);
  expect(words.level).toBe('kill');
});

test('a token that inherits nothing is not cancelled from above and not linked', () => {
  const { token } = setUp();
  const shielded = token.child({ inheritFrom: 'nothing' });
  token.cancel({}, { mode: 'kill' });
  expect(shielded.isCancelled).toBe(false);
  expect(token.statistics.children).toBe(0);
  expect(shielded.cancel().result).toBe('accepted');
});

test('disposing unlinks: from the middle, the front and the back', () => {
  const { token } = setUp();
  const children = Array.from({ length: 5 }, (_, i) => token.child(`${i}`));
  const order = [2, 4, 0, 1];
  for (const [done, i] of order.entries()) {
    children[i]![Symbol.dispose]();
    expect(token.statistics.children).toBe(4 - done);
  }
  token.cancel();
  expect(children.map((child) => child.isCancelled)).toEqual([false, false, false, true, false]);
});

test('work that still runs under a disposed token is stopped', async () => {
  const { clock, token } = setUp();
  const child = token.child('orphan');
  const deep = child.child();
  token[Symbol.dispose]();
  expect(child).toMatchObject({ level: 'abort', reason: { kind: 'parent', message: 'root ended' } });
  expect(deep.level).toBe('abort');
  await clock.advance(2_000);
  expect(deep.level).toBe('kill');
  expect(token.statistics.children).toBe(0);
});

test("orphans of a cancelled token keep that token's reason", () => {
  const { token } = setUp();
  const call = token.child({ inheritFrom: 'abort' });
  token.cancel({ kind: 'budget' });
  token[Symbol.dispose]();
  expect(call.reason).toEqual(token.reason);
  expect(call.level).toBe('abort');
});

test('a child of an ended token is cancelled from birth', () => {
  const { token } = setUp();
  token[Symbol.dispose]();
  expect(token.child()).toMatchObject({ level: 'abort', reason: { kind: 'parent', message: 'root ended' } });
  const cancelled = setUp().token;
  cancelled.cancel({ kind: 'shutdown' });
  cancelled[Symbol.dispose]();
  expect(cancelled.child().reason).toMatchObject({ kind: 'shutdown' });
});

test('a deadline cancels, and is gone when it fired, was disposed, or its token ended', async () => {
  const { clock, token, levels } = setUp();
  token.cancelAfter(100, { kind: 'deadline' }, { mode: 'now' });
  token.cancelAfter(50, { kind: 'never' })[Symbol.dispose]();
  await clock.advance(100);
  expect(token.reason?.kind).toBe('deadline');
  expect(levels).toEqual(['abort']);
  const ended = setUp();
  ended.token.cancelAfter(100, { kind: 'deadline' });
  ended.token[Symbol.dispose]();
  expect(ended.clock.pending).toBe(0);
  ended.token.cancelAfter(100, { kind: 'deadline' });
  expect(ended.clock.pending).toBe(0);
  const endedBare = setUp();
  endedBare.token[Symbol.dispose]();
  endedBare.token.cancelAfter(100, { kind: 'deadline' });
  expect(endedBare.clock.pending).toBe(0);
});

test('the timer of a deadline is released when it has fired, not when its token ends', () => {
  let fire: (() => void) | undefined;
  const dispose = vi.fn();
  const clock = {
    now: () => 0,
    setTimer(_ms: number, callback: () => void) {
      fire ??= callback;
      return { [Symbol.dispose]: dispose };
    },
  };
  const token = new CancellationToken({ clock });
  token.cancelAfter(100, { kind: 'deadline' }, { mode: 'kill' });
  expect(dispose).not.toHaveBeenCalled();
  fire?.();
  expect(token.reason?.kind).toBe('deadline');
  expect(dispose).toHaveBeenCalledTimes(1);
});

test('from(signal) is cancelled when the signal aborts: immediately, at abort, with the signal’s reason', () => {
  const { clock } = createVirtualWorld();
  const controller = new AbortController();
  const token = CancellationToken.from(controller.signal, { clock });
  expect(token.isCancelled).toBe(false);
  controller.abort(new Error('window closed'));
  expect(token).toMatchObject({ level: 'abort', reason: { kind: 'user', message: 'window closed', via: 'signal' } });
  token[Symbol.dispose]();
});

test('from(signal) understands signals that were aborted before, time-outs, and values that are not errors', () => {
  const { clock } = createVirtualWorld();
  const from = (reason: unknown) => CancellationToken.from(AbortSignal.abort(reason), { clock }).reason;
  const at = clock.now();
  expect(from(undefined)).toEqual({ kind: 'user', via: 'signal', at });
  expect(from('a text')).toEqual({ kind: 'user', message: 'a text', via: 'signal', at });
  expect(from(5)).toEqual({ kind: 'user', via: 'signal', at });
  expect(from(new DOMException('too late', 'TimeoutError'))).toEqual({
    kind: 'deadline',
    message: 'too late',
    via: 'signal',
    at,
  });
  expect(from(new Error('x', { cause: { kind: 'odd' } }))).toMatchObject({ kind: 'user', message: 'x' });
  expect(from(new Error('x', { cause: null }))).toMatchObject({ kind: 'user', message: 'x' });
  expect(from(new Error('x', { cause: 'text' }))).toMatchObject({ kind: 'user', message: 'x' });
  expect(from(new Error('x', { cause: { at: 5 } }))).toMatchObject({ kind: 'user', message: 'x', at });
  expect(from({ message: 'of something else' })).toEqual({ kind: 'user', via: 'signal', at });
});

test('a reason survives the way through a signal unchanged', () => {
  const { token } = setUp();
  token.cancel({ kind: 'superseded', message: 'newer', by: 'bob', via: 'chat' }, { mode: 'now' });
  const bridged = CancellationToken.from(token.signal);
  expect(bridged.reason).toEqual(token.reason);
  bridged[Symbol.dispose]();
});

test('from(signal) removes its listener from the signal when it is disposed, and can have a parent', () => {
  const controller = new AbortController();
  const { token: parent } = setUp();
  const tokens = Array.from({ length: 10 }, () => CancellationToken.from(controller.signal, { parent }));
  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(10);
  expect(tokens[0]?.name).toBe('signal');
  parent.cancel();
  expect(tokens.every((token) => token.isCancelled)).toBe(true);
  for (const token of tokens) token[Symbol.dispose]();
  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  expect(parent.statistics.children).toBe(0);
});

/** A clock that writes down which of its timers keep the process alive. */
function keepingClock() {
  const kept: (boolean | undefined)[] = [];
  const clock = {
    now: () => 0,
    setTimer(_ms: number, _callback: () => void, options?: { keepAlive?: boolean }) {
      kept.push(options?.keepAlive);
      return { [Symbol.dispose]: () => kept.pop() };
    },
  };
  return { clock, kept };
}

test('a waiting ladder keeps the process alive only while there are listeners', () => {
  const { clock, kept } = keepingClock();
  const cancelled = () => {
    const token = new CancellationToken({ clock });
    token.cancel();
    return token;
  };
  const alone = cancelled();
  expect(kept).toEqual([false]);
  alone.onCancel(() => {});
  expect(kept).toEqual([true]);
  alone[Symbol.dispose]();
  const withSignal = cancelled();
  expect(withSignal.signal.aborted).toBe(false);
  expect(kept).toEqual([true]);
  withSignal[Symbol.dispose]();
  const withChild = cancelled();
  withChild.child();
  expect(kept).toEqual([true]);
  withChild[Symbol.dispose]();
  const listenedBefore = new CancellationToken({ clock });
  listenedBefore.onCancel(() => {})[Symbol.dispose]();
  listenedBefore.cancel();
  expect(kept.at(-1)).toBe(false);
});

test('a waiting ladder lets the process end when the last child, the last listener or the signal needs it no more', () => {
  const { clock, kept } = keepingClock();
  const token = new CancellationToken({ clock });
  const children = [token.child(), token.child()];
  const before = token.onCancel(() => {});
  token.cancel();
  const after = token.onCancel(() => {});
  for (const one of [children[0]!, before, children[1]!]) {
    one[Symbol.dispose]();
    expect(kept).toEqual([true]);
  }
  after[Symbol.dispose]();
  expect(kept).toEqual([false]);
  const late = token.child();
  expect(kept).toEqual([true]);
  late[Symbol.dispose]();
  expect(kept).toEqual([false]);
  expect(token.signal.aborted).toBe(false);
  expect(kept).toEqual([true]);
  // A signal that has fired cannot be notified again.
  token.cancel({}, { mode: 'now' });
  expect(token.signal.aborted).toBe(true);
  expect(kept).toEqual([false]);
});

test('a string, or an error, as a reason is kept as its message', () => {
  const cancelWith = (given: unknown) => {
    using token = new CancellationToken({ clock: createVirtualWorld().clock });
    token.cancel(given as string);
    return token.reason;
  };
  expect(cancelWith('because')).toMatchObject({ kind: 'user', message: 'because' });
  expect(cancelWith(new Error('it broke'))).toMatchObject({ kind: 'user', message: 'it broke' });
});

test('a cancel never fails for its reason, whatever it is', () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const hostile = Object.defineProperty({ kind: 7, by: Symbol('x'), at: Number.NaN }, 'message', {
    get: () => {
      throw new Error('no');
    },
  });
  for (const given of [null, 5, Symbol('x'), () => {}, proxy, hostile, [], { kind: '' }, { message: {} }]) {
    using token = new CancellationToken();
    expect(token.cancel(given as object)).toMatchObject({ result: 'accepted' });
    expect(token.reason).toEqual({ kind: 'user', at: expect.closeTo(Date.now(), -5) as number });
    const controller = new AbortController();
    using follower = CancellationToken.from(controller.signal);
    controller.abort(given);
    expect(follower.reason?.kind).toBe('user');
  }
});

test('the message given to abort() is kept', () => {
  const controller = new AbortController();
  using token = CancellationToken.from(controller.signal);
  controller.abort('the user closed the tab');
  expect(token.reason).toMatchObject({ kind: 'user', message: 'the user closed the tab', via: 'signal' });
});

test('a deadline may be of any length: later than 2^31 ms, never, but not NaN', async () => {
  const { clock, token } = setUp();
  const days = 60 * 86_400_000;
  token.cancelAfter(days, { kind: 'deadline' });
  token.cancelAfter(Infinity, { kind: 'deadline', message: 'never' });
  expect(() => token.cancelAfter(Number.NaN, { kind: 'deadline' })).toThrow(
    'ms: expected a number of milliseconds, or Infinity for never, got NaN',
  );
  expect(clock.pending).toBe(1);
  await clock.advance(days - 1);
  expect(token.isCancelled).toBe(false);
  await clock.advance(1);
  expect(token.reason).toMatchObject({ kind: 'deadline' });
  token[Symbol.dispose]();
  expect(clock.pending).toBe(0);
});

// A minute, for a busy machine and for sources that count what runs.
test('a chain of 100,000 and a crowd of 100,000 are cancelled without a stack overflow', { timeout: 60_000 }, () => {
  const root = new CancellationToken();
  let deepest = root;
  for (let i = 0; i < 100_000; i++) deepest = deepest.child();
  const crowd = Array.from({ length: 100_000 }, () => root.child());
  root.cancel({}, { mode: 'kill' });
  expect(deepest.level).toBe('kill');
  expect(crowd.every((token) => token.isCancelled)).toBe(true);
  root[Symbol.dispose]();
});

test('children can be named, by a word or by an option', () => {
  const { token } = setUp();
  expect([token.child('a').name, token.child({ name: 'b' }).name, token.child().name]).toEqual(['a', 'b', 'token']);
});

test('a reason is plain data with only the given fields', () => {
  const { token } = setUp();
  token.cancel({ message: 'm', by: 'b', via: 'v' });
  expect(token.reason).toStrictEqual({ kind: 'user', message: 'm', by: 'b', via: 'v', at: token.clock.now() });
  expect(Object.isFrozen(token.reason)).toBe(true);
  const bare = setUp().token;
  bare.cancel();
  expect(Object.keys(bare.reason!)).toEqual(['kind', 'at']);
  expect(catchError(() => bare.throwIfCancelled())).toMatchObject({ message: 'Cancelled (user)' });
});

test('every signal of one cancelled tree has the very same reason', () => {
  const { token } = setUp();
  const child = token.child();
  const signals = [token.signal, child.signal];
  token.cancel({}, { mode: 'now' });
  expect(signals[0]?.reason).toBe(signals[1]?.reason);
});

test('disposing twice does not affect children created in between', () => {
  const { token } = setUp();
  token[Symbol.dispose]();
  const child = token.child();
  token[Symbol.dispose]();
  expect(child.level).toBe('abort');
});

test('the clock is inherited and may be read', () => {
  const { clock, token } = setUp();
  expect(token.child().clock).toBe(clock);
  expect(new CancellationToken().name).toBe('token');
});

function catchError(action: () => void): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  return undefined;
}

test.each([null, 7, 'kill', Object.defineProperty({}, 'mode', { get: () => expect.unreachable() })])(
  'a cancel whose options cannot be read reports it and changes nothing: %#',
  (options) => {
    using token = new CancellationToken();
    expect(() => token.cancel('enough', options as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_SETTING' }),
    );
    expect(token.isCancelled).toBe(false);
  },
);
