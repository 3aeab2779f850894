import type { UIMessage } from 'ai';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { ALL } from '../browser.ts';
import { judge, OWNER } from './judge.ts';
import type { Given } from './orders.ts';

const PAGE = {} as Page;

function did(kind: Given['kind'], turn: string, more: Partial<Given> = {}): Omit<Given, 'at'> {
  const order = { id: `${kind} ${turn}`, messageId: undefined, end: 'acknowledged', mayBeLost: false } as const;
  return { kind, turn, page: PAGE, user: OWNER, orders: [order], turns: new Set([turn]), ...more };
}

const said = (text: string): UIMessage => ({ id: text, role: 'user', parts: [{ type: 'text', text }] });

/** A reply that was cut, by a newer message or a user. */
const cut = (id: string, kind: 'superseded' | 'user'): UIMessage => ({
  id,
  role: 'assistant',
  parts: [{ type: 'data-stop-report', data: { reason: { kind } } } as UIMessage['parts'][number]],
});

const whole = (id: string): UIMessage => ({ id, role: 'assistant', parts: [{ type: 'text', text: ALL }] });

const judged = (messages: readonly UIMessage[], ...given: readonly Omit<Given, 'at'>[]) =>
  judge({ messages, effects: [], given: given.map((one, at) => ({ ...one, at })) });

test('a reply that only a newer message has cut is the last one if that message was rolled back', () => {
  const messages = [said('hold 1'), cut('m1', 'superseded')];
  const history = [did('send', 'hold 1'), did('send', 'hold 2')];
  expect(judged(messages, ...history, did('rollback', 'hold 2'))).toEqual([]);
});

test('the rollback of another turn excuses nothing', () => {
  const messages = [said('hold 2'), cut('m2', 'superseded')];
  const given = [did('send', 'hold 1'), did('rollback', 'hold 1'), did('send', 'hold 2')];
  expect(judged(messages, ...given)).toEqual(["stopped, and not meant: 'hold 2'"]);
});

test('a rollback that left its turn excuses no reply before it', () => {
  const messages = [said('all 1'), cut('m1', 'superseded'), said('hold 2'), cut('m2', 'superseded')];
  const given = [did('send', 'all 1'), did('send', 'hold 2'), did('rollback', 'all 1')];
  expect(judged(messages, ...given)).toEqual(["stopped, and not meant: 'hold 2'"]);
});

test('a stop means the reply that it names, by its run or its message, and no other', () => {
  const messages = [said('stall 1'), cut('m1-stop', 'user'), said('all 2'), whole('m2')];
  const sent = [did('send', 'stall 1'), did('send', 'all 2')];
  const order = { id: 's', end: 'acknowledged', mayBeLost: false } as const;
  const stop = (messageId: string | undefined) => did('stop', 'all 2', { orders: [{ ...order, messageId }] });
  expect(judged(messages, ...sent, stop('m1'))).toEqual([]);
  for (const other of ['m2', undefined])
    expect(judged(messages, ...sent, stop(other))).toEqual(["stopped, and not meant: 'stall 1'"]);
});

test('a stop that was acknowledged must have cut a held reply, unless the process of its call was ended before', () => {
  const given = [did('send', 'call look 1'), did('stop', 'call look 1')];
  const ended = { type: 'text', text: `the process that ran it stopped before it ended` } as const;
  const { parts } = whole('m1');
  expect(judged([said('call look 1'), whole('m1')], ...given)).toEqual(["lost: the stop of 'call look 1'"]);
  expect(judged([said('call look 1'), { ...whole('m1'), parts: [ended, ...parts] }], ...given)).toEqual([]);
});
