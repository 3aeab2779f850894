import { expect, test } from 'vitest';
import { hintOf } from './hint.ts';

const TASK = { id: 't0-a', tenant: 'acme', worker: 'w' };
const ORDER = {
  epoch: '3',
  stopLevel: 'abort',
  stopReason: '{"kind":"user","message":"a\\nb","at":5}',
  abortAt: '10',
  killAt: '2010',
  undo: '1',
};

const flat = (fields: object): string[] => Object.entries(fields).flat() as string[];

test('an entry about a cancel holds the order', () => {
  expect(hintOf(flat({ type: 'cancel', ...TASK, conversation: 'c', ...ORDER }))).toEqual({
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
  for (const name of Object.keys(ORDER)) {
    if (name === 'undo' || name === 'epoch') continue;
    expect(hintOf(flat({ ...told, ...ORDER, [name]: 'x' })), name).toEqual(told);
    expect(
      hintOf(flat({ ...told, ...Object.fromEntries(Object.entries(ORDER).filter(([key]) => key !== name)) })),
    ).toEqual(told);
  }
  for (const stopReason of ['null', '[]', '{}', '"user"', '{"kind":5}']) {
    expect(hintOf(flat({ ...told, ...ORDER, stopReason })), stopReason).toEqual(told);
  }
  expect(hintOf(flat({ ...TASK, ...ORDER, type: 'status' }))).toEqual({ type: 'status', ...TASK });
});

test('an entry without an epoch is for no claim', () => {
  const { epoch: _epoch, ...rest } = ORDER;
  expect(hintOf(flat({ type: 'cancel', ...TASK, ...rest }))).toMatchObject({ order: { epoch: Number.NaN } });
});

test('an entry that says only that somebody listens, or nothing, is no hint', () => {
  expect(hintOf(['type', 'listen'])).toBeUndefined();
  expect(hintOf(['type', 'cancel', 'id', 't0-a'])).toBeUndefined();
  expect(hintOf([])).toBeUndefined();
});
