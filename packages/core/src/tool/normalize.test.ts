import { expect, test } from 'vitest';
import { CancelledError } from '../stop/errors.ts';
import { cloneJson, copyJson, deepFreeze, describeError, isCausedByCancel, normalizeResult } from './normalize.ts';

const trap = (): never => {
  throw new Error('trap');
};

test.each<[unknown, unknown]>([
  ['text', { content: 'text' }],
  [undefined, { content: 'It returned no content.' }],
  [null, { content: 'It returned no content.' }],
  [trap, { content: 'It returned no content.' }],
  [7, { content: '7', details: 7 }],
  [false, { content: 'false', details: false }],
  [[1, 2], { content: '[1,2]', details: [1, 2] }],
  [
    { celsius: 21, at: new Date(0) },
    {
      content: '{"celsius":21,"at":"1970-01-01T00:00:00.000Z"}',
      details: { celsius: 21, at: '1970-01-01T00:00:00.000Z' },
    },
  ],
  [1n, { content: 'It ended, but what it returned could not be read.', isError: true }],
  [{ content: null }, { content: 'It returned no content.' }],
  [{ details: undefined, isError: 'yes' }, { content: 'It returned no content.' }],
  [{ content: { ok: true } }, { content: '{"ok":true}' }],
  [{ content: 'x', details: trap, isError: false }, { content: 'x' }],
  [
    { content: 'x', details: null, isError: true },
    { content: 'x', details: null, isError: true },
  ],
  [
    { content: 'x', details: 1n },
    { content: 'x', details: { cut: 'it was not JSON' } },
  ],
])('%o is read as %o', (value, result) => {
  expect(normalizeResult(value)).toStrictEqual(result);
});

test.each<[unknown, unknown]>([
  [
    { type: 'image', mediaType: 'image/png', data: 'AAAA' },
    { type: 'image', mediaType: 'image/png', data: 'AAAA' },
  ],
  [
    { type: 'image', mediaType: 'a/b' },
    { type: 'text', text: '{"type":"image","mediaType":"a/b"}' },
  ],
  [
    { type: 'image', data: 'A' },
    { type: 'text', text: '{"type":"image","data":"A"}' },
  ],
  [
    { mediaType: 'a/b', data: 'A' },
    { type: 'text', text: '{"mediaType":"a/b","data":"A"}' },
  ],
  [
    { type: 'text', text: 'said' },
    { type: 'text', text: 'said' },
  ],
  [
    { type: 'text', text: 7 },
    { type: 'text', text: '{"type":"text","text":7}' },
  ],
  [
    { type: 'json', text: 'said' },
    { type: 'text', text: '{"type":"json","text":"said"}' },
  ],
  ['bare', { type: 'text', text: 'bare' }],
  [undefined, { type: 'text', text: 'undefined' }],
])('%o as a part of content is read as %o', (part, read) => {
  const { content } = normalizeResult({ content: [part] });
  expect(content).toStrictEqual([read]);
  expect([content, content[0]].every(Object.isFrozen)).toBe(true);
});

test('all parts are read up to the limit', () => {
  expect(normalizeResult({ content: Array.from({ length: 10_000 }, () => 'x') }).content).toHaveLength(10_000);
});

test('a copy of JSON shares nothing and is frozen through and through', () => {
  const value = { list: [{ deep: true }] };
  const copy = cloneJson(value) as typeof value;
  expect(copy).toEqual(value);
  expect([copy, copy.list, copy.list[0]].every(Object.isFrozen)).toBe(true);
  expect(Object.isFrozen(value)).toBe(false);
  expect(cloneJson(undefined)).toBeUndefined();
  expect(() => cloneJson(1n)).toThrow(TypeError);
  expect(Object.isFrozen(copyJson(1n))).toBe(true);
});

test('frozen objects are not inspected again', () => {
  const inner = { open: true };
  expect(deepFreeze(Object.freeze({ inner }))).toEqual({ inner });
  expect(Object.isFrozen(inner)).toBe(false);
  const work = (): void => {};
  expect(Object.isFrozen(deepFreeze({ work }).work)).toBe(false);
});

test.each<[unknown, string]>([
  [null, 'null'],
  [undefined, 'undefined'],
  ['text', 'text'],
  [Object.assign(() => {}, { message: 'hidden', toString: () => 'a function' }), 'a function'],
  [new Error('said'), 'said'],
  [new TypeError(), 'TypeError'],
  [{ message: '', name: 7 }, '{"message":"","name":7}'],
  [{ message: { code: 1 } }, '{"code":1}'],
  [new CancelledError({ kind: 'user', at: 0, message: 'private' }), 'Cancelled (user)'],
])('%o as an error has the message %s', (error, said) => {
  expect(describeError(error)).toBe(said);
});

test('only a cancelled error or an abort error counts as caused by the cancel', () => {
  expect(isCausedByCancel(new CancelledError({ kind: 'user', at: 0 }))).toBe(true);
  expect(isCausedByCancel(new DOMException('stopped', 'AbortError'))).toBe(true);
  expect([undefined, null, 'AbortError', new Error('x')].map(isCausedByCancel)).toEqual([false, false, false, false]);
  expect(isCausedByCancel(Object.defineProperty({}, 'name', { get: trap }))).toBe(false);
});
