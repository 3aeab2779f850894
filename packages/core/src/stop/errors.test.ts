import { expect, test } from 'vitest';
import {
  CallOutcomeUnknownError,
  CallTimeoutError,
  CancelledError,
  isCancelledError,
  isOutcomeUnknownError,
} from './errors.ts';

const reason = { kind: 'user', at: 0 } as const;

test('a cancelled error is known by its brand, even when another copy of the package made it', () => {
  expect(isCancelledError(new CancelledError(reason))).toBe(true);
  const other = Object.defineProperty(new Error('x'), Symbol.for('@whoa/core/cancelled'), { value: true });
  expect(isCancelledError(other)).toBe(true);
});

test('an error that only looks like a cancelled error is not one', () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  for (const value of [
    proxy,
    undefined,
    null,
    'Cancelled',
    0,
    {},
    new Error('Cancelled'),
    new DOMException('x', 'AbortError'),
  ]) {
    expect(isCancelledError(value)).toBe(false);
    expect(isOutcomeUnknownError(value)).toBe(false);
  }
});

test('an error for an unknown outcome is recognized by its brand, its name and its code', () => {
  const cause = new Error('connection lost');
  const error = new CallOutcomeUnknownError('It may have been paid', { cause });
  expect(error).toMatchObject({ name: 'CallOutcomeUnknownError', code: 'OUTCOME_UNKNOWN', cause });
  expect([isOutcomeUnknownError(error), isCancelledError(error)]).toEqual([true, false]);
});

test('a cancelled error carries the partial result, and a cause only if it has one', () => {
  const cause = new Error('socket closed');
  expect(new CancelledError(reason, { partial: [1], cause })).toMatchObject({
    partial: [1],
    cause,
    message: 'Cancelled (user)',
  });
  expect('cause' in new CancelledError(reason)).toBe(false);
});

test('a timeout error explains what to do', () => {
  const error = new CallTimeoutError('lookup', 300, { state: 'unknown', cause: 7 });
  expect(error).toMatchObject({ name: 'CallTimeoutError', code: 'CALL_TIMEOUT', state: 'unknown', cause: 7 });
  expect(error.message).toBe('lookup did not end within 300 ms; raise its timeoutMs or make it faster');
});
