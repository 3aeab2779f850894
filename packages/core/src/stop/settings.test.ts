import { expect, test } from 'vitest';
import { guard } from './bounded/guard.ts';
import { createLateResults } from './bounded/late-results.ts';
import { count, hooks, pauseMs, type Rule, SettingsError, text, timeLimitMs } from './settings.ts';
import { CancellationToken } from './token/token.ts';

const refusal = (options: object): Promise<unknown> =>
  guard(() => 'value', { name: 'work', ...options }).then(
    (value) => value,
    (error: unknown) => (error instanceof SettingsError ? error.message : error),
  );

test('a setting that cannot work is rejected with its name, its value and what is allowed', async () => {
  expect(await refusal({ timeoutMs: Number.NaN })).toBe(
    'timeoutMs: expected 0 ms or more, or Infinity for never, got NaN',
  );
  expect(await refusal({ timeoutMs: '5' })).toBe('timeoutMs: expected 0 ms or more, or Infinity for never, got "5"');
  expect(await refusal({ cleanupTimeoutMs: 0 })).toBe('cleanupTimeoutMs: expected more than 0 to 600000 ms, got 0');
  expect(await refusal({ cleanupTimeoutMs: 1_200_000 })).toBe(
    'cleanupTimeoutMs: expected more than 0 to 600000 ms, got 1200000',
  );
  expect(await refusal({ whenCancelled: 'later' })).toBe(
    "whenCancelled: expected 'interrupt' or 'finish', got \"later\"",
  );
  expect(await refusal({ name: '' })).toBe('name: expected a non-empty string, got ""');
  expect(await refusal({ onWait: [] })).toBe('onWait: expected a function, got a list');
  expect(await refusal({ lateResults: {} })).toBe(
    'lateResults: expected late results (an object with abandon(), returned(), entries()), got an object',
  );
  expect(await refusal({ whenCancelled: 'finish' })).toBe(
    "timeoutMs: 'work' finishes when cancelled, so it needs a timeoutMs",
  );
  expect(() => createLateResults({ maxEntries: 0 })).toThrow('maxEntries: expected a whole number from 1, got 0');
});

test.each<[string, Rule, readonly unknown[], readonly unknown[]]>([
  ['a limit of time', timeLimitMs, [0, 1, Infinity], [-1, Number.NaN, '1']],
  ['a pause', pauseMs, [0, 1], [-1, Infinity, Number.NaN, '1']],
  ['a count', count(), [1, 2], [0, 1.5, Infinity, '1']],
  ['a count without end', count({ min: 0, orInfinity: true }), [0, 2, Infinity], [-1, 1.5, -Infinity]],
  ['hooks', hooks, [{}, { any: undefined }], [7, null]],
])('%s is accepted and refused at its edges', (_, rule, accepted, refused) => {
  for (const value of accepted) expect(rule(value, 'field')).toBe(value);
  for (const value of refused) expect(() => rule(value, 'field')).toThrow(SettingsError);
});

test('an invalid value is described briefly, and none of its code is shown or run', () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const described = (value: unknown): string => {
    try {
      text(value, 'field');
      return 'accepted';
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect([() => 'secret', Symbol('secret'), proxy, [], {}, 5n].map(described)).toEqual(
    ['a function', 'a symbol', 'a revoked proxy', 'a list', 'an object', '5'].map(
      (words) => `field: expected a string, got ${words}`,
    ),
  );
  expect(() => count()('x'.repeat(81), 'field')).toThrow(`got "${'x'.repeat(80)}…"`);
  expect(() => hooks({ 'cancel-request': () => {} }, 'hooks')).toThrow('hooks.cancel-request: unknown event; use any');
  expect(() => hooks('x', 'hooks')).toThrow('hooks: expected an object with functions, got "x"');
});

test('a refusal has a name and a code, and a cause only if it has one', () => {
  expect(new SettingsError('field', 'no')).toMatchObject({ name: 'SettingsError', code: 'INVALID_SETTING' });
  expect('cause' in new SettingsError('field', 'no')).toBe(false);
});

test('a setting that is misspelt is rejected with the nearest name and all there are', async () => {
  expect(await refusal({ timeout: 5 })).toBe(
    "timeout: unknown setting; did you mean 'timeoutMs'? The settings are name, whenCancelled, timeoutMs, graceMs, cleanupTimeoutMs, lateResults, key, effectKey, onWait, token, signal",
  );
  expect(await refusal({ nothingLikeIt: 5 })).toMatch(/^nothingLikeIt: unknown setting; the settings are name, /);
});

test('a token passed as a signal, or a signal as a token, gets an error that names the right option', async () => {
  using token = new CancellationToken();
  expect(await refusal({ token: token.signal })).toContain('pass a signal as `signal`');
  expect(await refusal({ signal: token })).toContain('pass a token as `token`');
  expect(await refusal({ token: { isCancelled: false } })).toContain(
    'a CancellationToken (of this copy of @whoa/core)',
  );
});

test.each([
  [null, 'null'],
  ['abort', '"abort"'],
  [{ aborted: false }, 'an object'],
  [new EventTarget(), 'an object'],
])('an object that only looks like a signal is rejected: %o', async (signal, shown) => {
  expect(await refusal({ signal })).toBe(`signal: expected an AbortSignal, got ${shown}`);
});

test('a setting that is undefined is as good as absent', async () => {
  expect(await refusal({ timeoutMs: undefined, token: undefined, lateResults: undefined })).toBe('value');
});

test('a time limit of any length, or none, is carried', async () => {
  for (const timeoutMs of [2 ** 31, 30 * 86_400_000, Infinity]) expect(await refusal({ timeoutMs })).toBe('value');
});

test('every rejected value leads to a readable error', async () => {
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();
  const deep: unknown[] = [];
  deep.push(deep);
  const hostile = Object.defineProperty({}, 'toString', {
    get: () => {
      throw new Error('no');
    },
  });
  const values: readonly unknown[] = [
    revoked,
    deep,
    hostile,
    Symbol('x'),
    5n,
    null,
    new Date(Number.NaN),
    'x'.repeat(1e6),
    Object.create(null),
  ];
  for (const value of values) {
    for (const name of ['name', 'timeoutMs', 'whenCancelled', 'lateResults', 'token', 'signal', 'onWait', 'key']) {
      // A text is a fine name.
      if (typeof value === 'string' && (name === 'name' || name === 'key')) continue;
      const message = await refusal({ [name]: value });
      expect(message).toMatch(new RegExp(`^${name}: (expected .+, got .+|it could not be read)$`, 's'));
      expect((message as string).length).toBeLessThan(300);
    }
    const options = await guard(() => 'value', value as { name: string }).catch((error: unknown) => error);
    expect(options).toBeInstanceOf(SettingsError);
  }
});

test('a setting that cannot be read, or changes while it is read, cannot get past', async () => {
  const throwing = {
    get timeoutMs(): number {
      throw new Error('no');
    },
  };
  const error = await guard(
    () => 1,
    Object.defineProperties({ name: 'x' }, Object.getOwnPropertyDescriptors(throwing)),
  ).catch((refused: unknown) => refused);
  expect(error).toMatchObject({
    message: 'timeoutMs: it could not be read',
    field: 'timeoutMs',
    cause: { message: 'no' },
  });
  let reads = 0;
  const changing = {
    get cleanupTimeoutMs() {
      return reads++ === 0 ? 5 : -1;
    },
  };
  const options = Object.defineProperties({ name: 'x' }, Object.getOwnPropertyDescriptors(changing));
  expect(await guard(({ defer }) => defer(() => {}), options)).toBeUndefined();
  expect(reads).toBe(1);
});
