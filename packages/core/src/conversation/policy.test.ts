import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type ConversationEffect,
  type ConversationInput,
  type ConversationState,
  MAX_MERGED_MESSAGES,
  MAX_SEEN_MESSAGES,
  MAX_WAITING_MESSAGES,
  NEW_CONVERSATION,
  type Policy,
  reduceConversation,
} from './policy.ts';

function applyAll(...inputs: ConversationInput[]) {
  let state: ConversationState = NEW_CONVERSATION;
  const effects: ConversationEffect[] = [];
  for (const input of inputs) {
    const next = reduceConversation(state, input);
    state = next.state;
    effects.push(...next.effects);
  }
  return { state, effects };
}

const message = (id: string, policy: Policy = 'replace', debounceMs = 0, context = ''): ConversationInput => ({
  type: 'message',
  id,
  policy,
  debounceMs,
  context,
});
const ended: ConversationInput = { type: 'run-ended' };
const start = (...ids: string[]): ConversationEffect => ({ type: 'start', ids });
const answer = (id: string, status: Extract<ConversationEffect, { type: 'answer' }>['status']): ConversationEffect => ({
  type: 'answer',
  id,
  status,
});
const stop: ConversationEffect = { type: 'stop' };

test('the first message starts a run', () => {
  expect(applyAll(message('a')).effects).toEqual([start('a')]);
  expect(applyAll(message('a'), ended).state).toMatchObject({ steered: [], waiting: [] });
  expect(applyAll(message('a'), ended).state.running).toBeUndefined();
});

test('replace: the run is cancelled, the new one waits for its end, and waiting messages are superseded', () => {
  const { effects, state } = applyAll(message('a'), message('b'), message('c'));
  expect(effects).toEqual([start('a'), stop, answer('b', 'superseded')]);
  expect(state.running).toMatchObject({ ids: ['a'], stopping: 'superseded' });
  expect(reduceConversation(state, ended).effects).toEqual([start('c')]);
});

test('queue: messages wait their turn, in order', () => {
  const queued = [message('a'), message('b', 'queue'), message('c', 'queue')];
  expect(applyAll(...queued).effects).toEqual([start('a')]);
  expect(applyAll(...queued, ended, ended, ended).effects).toEqual([start('a'), start('b'), start('c')]);
});

test('merge: messages that wait in a row become one run, and the last gets the answer', () => {
  const merged = [message('a'), message('b', 'queue'), message('c', 'merge'), message('d', 'merge')];
  expect(applyAll(...merged, ended, ended).effects).toEqual([
    start('a'),
    start('b', 'c', 'd'),
    answer('b', 'merged'),
    answer('c', 'merged'),
  ]);
});

test('merge: other contexts and messages that were steered are left alone, and the limit holds', () => {
  const apart = [message('a'), message('s', 'steer'), message('b', 'merge'), message('c', 'merge', 0, 'ann')];
  expect(applyAll(...apart, ended, ended, ended).effects.slice(2)).toEqual([start('s'), start('b'), start('c')]);
  const many = Array.from({ length: MAX_MERGED_MESSAGES + 1 }, (_, i) => message(`m${i}`, 'merge'));
  expect(applyAll(message('a'), ...many).state.waiting.map(({ ids }) => ids.length)).toEqual([MAX_MERGED_MESSAGES, 1]);
});

test('merge: a message that was merged can be withdrawn, and a cancel drops all', () => {
  const merged = [message('a'), message('b', 'merge'), message('c', 'merge')];
  expect(applyAll(...merged, { type: 'withdraw', id: 'c' }, ended).effects.slice(1)).toEqual([
    answer('c', 'cancelled'),
    start('b'),
  ]);
  expect(applyAll(...merged, { type: 'cancel' }).effects.slice(1)).toEqual([
    answer('b', 'cancelled'),
    answer('c', 'cancelled'),
  ]);
});

test('a queue has an end: beyond it messages are rejected', () => {
  const full = Array.from({ length: MAX_WAITING_MESSAGES + 2 }, (_, i) => message(`${i}`, 'queue'));
  expect(applyAll(...full).effects.at(-1)).toEqual(answer(`${MAX_WAITING_MESSAGES + 1}`, 'rejected'));
});

test('steer: the message goes to the run, and is next if the run never read it', () => {
  const steered = [message('a'), message('b', 'steer'), message('c', 'steer')];
  expect(applyAll(...steered).effects).toEqual([start('a'), { type: 'steer', id: 'b' }, { type: 'steer', id: 'c' }]);
  expect(applyAll(...steered, { type: 'steer-delivered', id: 'b' }, ended).effects.slice(3)).toEqual([
    answer('b', 'steered'),
    start('c'),
  ]);
  expect(applyAll(...steered, message('d', 'queue'), ended, ended).effects.slice(3)).toEqual([
    start('b', 'c'),
    answer('b', 'merged'),
    start('d'),
  ]);
});

test('steer into a run that is stopping waits instead', () => {
  expect(applyAll(message('a'), { type: 'cancel' }, message('b', 'steer'), ended).effects).toEqual([
    start('a'),
    start('b'),
  ]);
});

test('reject: while something runs the message is rejected, and may be sent again', () => {
  expect(applyAll(message('a'), message('b', 'reject'), ended, message('b', 'reject')).effects).toEqual([
    start('a'),
    answer('b', 'rejected'),
    start('b'),
  ]);
});

test('a redelivered message is a no-op, whatever became of the first delivery', () => {
  expect(applyAll(message('a'), message('a'), ended, message('a')).effects).toEqual([
    start('a'),
    answer('a', 'duplicate'),
    answer('a', 'duplicate'),
  ]);
});

test('the number of remembered ids is bounded', () => {
  const many = Array.from({ length: MAX_SEEN_MESSAGES + 1 }, (_, i) => [message(`${i}`), ended]).flat();
  expect(applyAll(...many).state.seen).toHaveLength(MAX_SEEN_MESSAGES);
});

test('debounce: messages that follow each other become one, and the last gets the answer', () => {
  const gathered = [message('a', 'replace', 50), message('b', 'queue', 70)];
  expect(applyAll(...gathered).effects).toEqual([
    { type: 'gather', ms: 50 },
    { type: 'gather', ms: 70 },
  ]);
  const { effects, state } = applyAll(...gathered, { type: 'gathered' });
  expect(effects.slice(2)).toEqual([start('a', 'b'), answer('a', 'merged')]);
  expect(state.debouncing).toBeUndefined();
  expect(applyAll({ type: 'gathered' }).effects).toEqual([]);
});

test('a message that does not wait takes the gathered ones along', () => {
  expect(applyAll(message('a', 'queue', 50), message('b')).effects).toEqual([
    { type: 'gather', ms: 50 },
    start('a', 'b'),
    answer('a', 'merged'),
  ]);
});

test('cancel stops the run and drops what waits, is steered or is being gathered', () => {
  const { effects, state } = applyAll(
    message('a'),
    message('b', 'queue'),
    message('c', 'steer'),
    message('d', 'queue', 9),
    { type: 'cancel' },
    { type: 'cancel' },
  );
  expect(effects.slice(3)).toEqual([answer('d', 'cancelled'), answer('b', 'cancelled'), answer('c', 'cancelled')]);
  expect(state.running).toMatchObject({ ids: ['a'], stopping: 'user' });
  expect(reduceConversation(state, ended).effects).toEqual([]);
  expect(applyAll({ type: 'cancel' }).effects).toEqual([]);
});

test('a cancel does not change why a run is already stopping', () => {
  expect(applyAll(message('a'), message('b'), { type: 'cancel' }).state.running?.stopping).toBe('superseded');
  expect(applyAll(message('a'), { type: 'cancel' }, message('b')).state.running?.stopping).toBe('user');
});

test('one message can be withdrawn: running, waiting, steered, gathered or not there', () => {
  const withdraw = (id: string): ConversationInput => ({ type: 'withdraw', id });
  const running = applyAll(message('a'), withdraw('a'), withdraw('a'));
  expect(running.effects).toEqual([start('a')]);
  expect(running.state.running).toMatchObject({ ids: ['a'], stopping: 'user' });
  const delivered: ConversationInput = { type: 'steer-delivered', id: 'b' };
  expect(applyAll(message('a'), message('b', 'steer'), withdraw('b'), delivered, ended).effects).toEqual([
    start('a'),
    { type: 'steer', id: 'b' },
    answer('b', 'cancelled'),
  ]);
  expect(applyAll(message('a'), message('b', 'queue'), withdraw('b'), ended).effects).toEqual([
    start('a'),
    answer('b', 'cancelled'),
  ]);
  const debouncing = [message('a', 'queue', 9), message('b', 'queue', 9)];
  expect(applyAll(...debouncing, withdraw('a'), { type: 'gathered' }).effects.slice(2)).toEqual([
    answer('a', 'cancelled'),
    start('b'),
  ]);
  expect(applyAll(message('a', 'queue', 9), withdraw('a')).state.debouncing).toBeUndefined();
  expect(applyAll(withdraw('ghost'))).toEqual({ state: NEW_CONVERSATION, effects: [] });
});

test('messages of different contexts are never merged: those that were held back run first', () => {
  const both = [message('a', 'queue', 50, 'ann'), message('b', 'queue', 50, 'bob'), message('c', 'queue', 50, 'bob')];
  expect(applyAll(...both, { type: 'gathered' }, ended).effects).toEqual([
    { type: 'gather', ms: 50 },
    start('a'),
    { type: 'gather', ms: 50 },
    { type: 'gather', ms: 50 },
    start('b', 'c'),
    answer('b', 'merged'),
  ]);
  const replaced = [message('a', 'replace', 50, 'ann'), message('b', 'replace', 0, 'bob'), ended];
  expect(applyAll(...replaced).effects).toEqual([{ type: 'gather', ms: 50 }, start('a'), stop, start('b')]);
});

test('a steering message of another context waits for its own run, behind what the run was sent', () => {
  const steered = [message('a', 'steer', 0, 'ann'), message('b', 'steer', 0, 'bob'), message('c', 'steer', 0, 'ann')];
  expect(applyAll(...steered, ended, ended).effects).toEqual([
    start('a'),
    { type: 'steer', id: 'c' },
    start('c'),
    start('b'),
  ]);
});

test('a rejected message does not take those with it that are held back', () => {
  expect(
    applyAll(message('a'), message('b', 'queue', 50), message('c', 'reject'), { type: 'gathered' }, ended).effects,
  ).toEqual([start('a'), { type: 'gather', ms: 50 }, answer('c', 'rejected'), start('b')]);
});

test('any story: never two runs or contexts at the same time, and every message is answered or run exactly once', () => {
  const step = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.tuple(
        fc.constantFrom<Policy>('replace', 'queue', 'steer', 'reject'),
        fc.constantFrom(0, 0, 10),
        fc.constantFrom('ann', 'ann', 'bob'),
      ),
    },
    { weight: 3, arbitrary: fc.constant('end' as const) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('cancel' as const, 'gathered' as const, 'withdraw' as const, 'deliver' as const),
    },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      let state = NEW_CONVERSATION;
      let running = 0;
      let sent = 0;
      const settled = new Map<string, number>();
      const contexts = new Map<string, string>();
      const apply = (input: ConversationInput) => {
        if (input.type === 'run-ended') {
          if (state.running === undefined) return;
          running--;
          const last = state.running.ids.at(-1)!;
          settled.set(last, (settled.get(last) ?? 0) + 1);
        }
        const next = reduceConversation(state, input);
        state = next.state;
        for (const effect of next.effects) {
          if (effect.type === 'start') expect(++running).toBe(1);
          const ids = effect.type === 'start' ? effect.ids : effect.type === 'steer' ? [effect.id] : [];
          for (const id of ids) expect(contexts.get(id)).toBe(state.running!.context);
          if (effect.type === 'answer') settled.set(effect.id, (settled.get(effect.id) ?? 0) + 1);
        }
      };
      for (const one of steps) {
        if (Array.isArray(one)) {
          contexts.set(`${sent}`, one[2]);
          apply(message(`${sent++}`, ...one));
        } else if (one === 'end') apply(ended);
        else if (one === 'withdraw') apply({ type: 'withdraw', id: `${sent - 1}` });
        else if (one !== 'deliver') apply({ type: one });
        else if (state.steered[0] !== undefined) apply({ type: 'steer-delivered', id: state.steered[0] });
      }
      apply({ type: 'gathered' });
      while (state.running !== undefined) apply(ended);
      for (let id = 0; id < sent; id++) expect(settled.get(`${id}`), `message ${id}`).toBe(1);
    }),
    { numRuns: 2_000 },
  );
});
