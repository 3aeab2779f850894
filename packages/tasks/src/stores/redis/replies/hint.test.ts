import { expect, test } from 'vitest';
import { parseHint } from './hint.ts';

const TASK = { id: 't0-a', tenant: 'acme', worker: 'w' };
const REASON = '{"kind":"user","message":"a\\nb","at":5}';
const ORDER = `3 claim-1 2 abort 10 2010 1 ${REASON}`;

const published = (...parts: readonly unknown[]) => parseHint(JSON.stringify(parts), 7);
const cancelled = (order: string) => published('cancel', 't0-a', 'acme', 'w', '', order);

test('a message about a cancel holds the order, for one claim', () => {
  expect(published('cancel', 't0-a', 'acme', 'w', 'c', ORDER)).toEqual({
    type: 'cancel',
    ...TASK,
    conversation: 'c',
    order: {
      epoch: 3,
      claim: 'claim-1',
      orderNumber: 2,
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

test('an incomplete order is ignored, and only cancels have orders', () => {
  const told = { type: 'cancel', ...TASK };
  const broken = [
    '',
    '3',
    ORDER.slice(0, -1),
    ORDER.slice(2),
    `${ORDER} `,
    ORDER.replace(' 1 ', ' 2 '),
    ORDER.replace('abort', 'stop'),
    ORDER.replace('10', '1.5'),
    ORDER.replace(REASON, '{"kind"}'),
    ORDER.replace('claim-1 ', ''),
  ];
  for (const order of broken) expect(cancelled(order), order).toEqual(told);
  expect(published('status', 't0-a', 'acme', 'w', '', ORDER)).toEqual({ type: 'status', ...TASK });
});

test('a hint that wakes a worker names the worker, the agent and the domain it came from', () => {
  expect(published('ready', 'w', 'assistant')).toEqual({ type: 'ready', worker: 'w', agent: 'assistant', domain: 7 });
});

test('other messages on a channel are not hints', () => {
  const strange: readonly (readonly unknown[])[] = [
    ['cancel', 't0-a'],
    ['cancel', 't0-a', 5],
    ['stop', 't0-a', 'acme'],
    ['ready', 'w'],
    [],
  ];
  for (const parts of strange) expect(published(...parts), JSON.stringify(parts)).toBeUndefined();
  for (const text of ['', '[', 'cancel t0-a acme', '{}', 'null', '5', '"cancel"']) {
    expect(parseHint(text, 0), text).toBeUndefined();
  }
});
