import { expect, test } from 'vitest';
import type { StoredTask } from '../operations/tables.ts';
import { applyTransition, TRANSITIONS } from './transitions.ts';

const task = {
  status: 'running',
  stage: 'held',
  stageAt: 1,
  policy: 'queue',
  session: 's',
  claim: 'c',
  worker: 'w',
  hasPendingOrders: false,
  lostClaim: 'l',
  released: 'r',
  epoch: 3,
  attempts: 0,
  crashes: 0,
  orderNumber: 4,
  startedAt: 5,
} as StoredTask;

const NAMES = Object.keys(TRANSITIONS) as (keyof typeof TRANSITIONS)[];

test.each(NAMES)('%s changes the fields that the table names, and no other', (name) => {
  const { next, set, plus, given = [], now = [], first = [], none = [], hasPendingOrders } = TRANSITIONS[name];
  const named = [...Object.keys({ ...set, ...plus }), ...given, ...now, ...first, ...none];
  const fields = Object.fromEntries(given.map((field) => [field, `given ${field}`]));
  const before: Record<string, unknown> = { ...task };
  const after: Record<string, unknown> = { ...applyTransition(task, name, { ...fields, now: 9 }) };
  const changed = Object.keys({ ...before, ...after }).filter((field) => before[field] !== after[field]);
  const mayChange = [
    ...named,
    ...(next === undefined ? [] : ['status']),
    ...(hasPendingOrders === undefined ? [] : ['hasPendingOrders']),
  ];
  expect(mayChange).toEqual(expect.arrayContaining(changed));
  for (const field of none) expect(after).not.toHaveProperty(field);
  for (const field of given) expect(after[field]).toBe(`given ${field}`);
  for (const field of now) expect(after[field]).toBe(9);
});

test('a count never falls below zero, and the first time is kept', () => {
  const released = applyTransition(task, 'release', { now: 9, released: 'c' });
  expect(released).toMatchObject({ status: 'init', attempts: 0, epoch: 4, released: 'c' });
  const held = applyTransition({ ...released, stage: 'ready' }, 'hold', {
    now: 9,
    session: 's2',
    claim: 'c2',
    worker: 'w2',
  });
  expect(held).toMatchObject({
    status: 'running',
    stage: 'held',
    attempts: 1,
    startedAt: 5,
    hasPendingOrders: true,
    session: 's2',
  });
});

test('only a worker that holds a task has orders to confirm', () => {
  expect(applyTransition(task, 'order', { now: 9 })).toMatchObject({ orderNumber: 5, hasPendingOrders: true });
  expect(applyTransition({ ...task, stage: 'ready' }, 'order', { now: 9 })).toMatchObject({
    orderNumber: 5,
    hasPendingOrders: false,
  });
});
