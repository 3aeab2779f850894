import { describe, expect, test } from 'vitest';
import { modelErrorFrom } from './errors.ts';

describe('any other failure', () => {
  const about = { model: 'm', hasContent: false };

  test('an empty account is not filled by waiting', () => {
    const data = { error: { code: 'insufficient_quota', message: 'Pay first' } };
    const error = modelErrorFrom({ message: 'Pay first', statusCode: 429, isRetryable: true, data }, about);
    expect(error).toMatchObject({ status: 429, isRetryable: false });
  });

  test('a missing key fails with what to do', () => {
    expect(modelErrorFrom({ message: 'No key', statusCode: 401 }, about).message).toMatch(/check the API key/);
  });

  test.each([
    ['a text', 'went wrong', /went wrong/],
    ['an object', { odd: true }, /odd/],
    ['nothing', undefined, /m failed/],
    ['an error', new Error('no such thing'), /no such thing/],
  ])('%s becomes a failure that is not tried again', (_, thrown, text) => {
    const error = modelErrorFrom(thrown, about);
    expect(error).toMatchObject({ isRetryable: false, cause: thrown });
    expect(error.message).toMatch(text);
  });

  test('a server cannot ask for more than an hour, nor for less than nothing', () => {
    const wait = (value: string) =>
      modelErrorFrom({ statusCode: 429, responseHeaders: { 'retry-after': value } }, about).retryAfterMs;
    expect(wait('999999999')).toBe(3_600_000);
    expect(wait('-5')).toBe(0);
    expect(wait('soon')).toBeUndefined();
  });
});
