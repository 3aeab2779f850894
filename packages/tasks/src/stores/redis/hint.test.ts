import { expect, test } from 'vitest';
import { hintOf as read } from './hint.ts';
import { createSeal } from './seal.ts';

const TASK = { id: 't0-a', tenant: 'acme', worker: 'w' };
const sealOf = (id: string) => `seal-of-${id}`;
const hintOf = (fields: readonly string[]) => read(fields, sealOf);
const SEAL = sealOf(TASK.id);
const ORDER = `3 abort 10 2010 1 ${SEAL} {"kind":"user","message":"a\\nb","at":5}`;

const flat = (fields: object): string[] => Object.entries(fields).flat() as string[];

test('an entry about a cancel holds the order', () => {
  expect(hintOf(flat({ type: 'cancel', ...TASK, conversation: 'c', order: ORDER }))).toEqual({
    type: 'cancel',
    ...TASK,
    conversation: 'c',
    order: {
      epoch: 3,
      stop: {
        level: 'abort',
        reason: { kind: 'user', message: 'a\nb', at: 5 },
        abortAt: 10,
        killAt: 2_010,
        undo: true,
      },
    },
  });
});

test('an order that is not whole is none, and only cancels have one', () => {
  const told = { type: 'cancel', ...TASK };
  const broken = [
    '',
    '3',
    'x abort 10 2010 1 {}',
    '3 stop 10 2010 1 {}',
    '3 abort 1.5 2010 1 {}',
    `3 abort 10 2010 1 ${SEAL} {"kind"}`,
    '3 abort 10 2010 1 {"kind":"user","at":5}',
  ];
  for (const order of [...broken, ORDER.slice(0, -1), ORDER.slice(2), ORDER.replace(' 1 ', ' 2 '), `${ORDER} `]) {
    expect(hintOf(flat({ ...told, order })), order).toEqual(told);
  }
  expect(hintOf(flat({ ...TASK, type: 'status', order: ORDER }))).toEqual({ type: 'status', ...TASK });
});

test('an entry that says only that somebody listens, or nothing, is no hint', () => {
  expect(hintOf(['type', 'listen'])).toBeUndefined();
  expect(hintOf(['type', 'cancel', 'id', 't0-a'])).toBeUndefined();
  expect(hintOf([])).toBeUndefined();
});

test('an order that does not bear the seal of our claim is none: it was forged, or sent again for another task', () => {
  const told = { type: 'cancel', ...TASK };
  const elsewhere = { ...TASK, id: 't0-b' };
  expect(hintOf(flat({ ...told, order: ORDER.replace(SEAL, '-') }))).toEqual(told);
  expect(hintOf(flat({ ...told, ...elsewhere, order: ORDER }))).toEqual({ ...told, ...elsewhere });
  const [ours, theirs] = [createSeal(), createSeal()];
  expect(ours('t0-a')).toMatch(/^[\w-]{22}$/);
  expect(ours('t0-a')).toBe(ours('t0-a'));
  for (const other of [ours('t0-b'), theirs('t0-a')]) expect(other).not.toBe(ours('t0-a'));
  // A seal that was forgotten is made again, the same.
  const forgetful = createSeal(1);
  const first = forgetful('t0-a');
  forgetful('t0-b');
  expect(forgetful('t0-a')).toBe(first);
});
