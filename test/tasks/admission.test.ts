// A conversation inside one process and one in a store decide the same.
import { expect, test } from 'vitest';
import {
  type ConversationInput,
  type ConversationState,
  NEW_CONVERSATION,
  type Policy,
  reduceConversation,
} from '../../packages/core/src/conversation/policy.ts';
import { ADMISSION_TABLE, type Admission } from '../../packages/tasks/src/ledger/rules/rules.ts';

const POLICIES = Object.keys(ADMISSION_TABLE) as Policy[];
/** A run inside a process starts in the step that admits its message, so there is no `init`. */
const STATES = ['none', 'running', 'cancelling'] as const;

const message = (id: string, policy: Policy): ConversationInput => ({
  type: 'message',
  id,
  policy,
  debounceMs: 0,
  context: '',
});

/** A conversation whose run is in this state, with one message that waits. */
function reach(state: (typeof STATES)[number]): ConversationState {
  if (state === 'none') return NEW_CONVERSATION;
  const inputs: ConversationInput[] = [message('running', 'queue')];
  if (state === 'cancelling') inputs.push({ type: 'cancel' });
  inputs.push(message('waiting', 'queue'));
  return inputs.reduce((before, input) => reduceConversation(before, input).state, NEW_CONVERSATION);
}

/** The result for the newest message. */
function admit(before: ConversationState, policy: Policy): Admission {
  const { state, effects } = reduceConversation(before, message('new', policy));
  if (effects.some(({ type }) => type === 'start')) return 'start';
  if (effects.some(({ type }) => type === 'steer')) return 'steer';
  const answered = effects.flatMap((effect) => (effect.type === 'answer' ? [[effect.id, effect.status]] : []));
  if (answered.some(([id, status]) => id === 'new' && status === 'rejected')) return 'reject';
  if (answered.some(([id, status]) => id === 'waiting' && status === 'superseded')) return 'replace';
  return state.waiting.at(-1)!.ids.includes('waiting') ? 'merge' : 'wait';
}

test.for(POLICIES.flatMap((policy) => STATES.map((state) => ({ policy, state }))))(
  '$policy while the run is $state',
  ({ policy, state }) => expect(admit(reach(state), policy)).toBe(ADMISSION_TABLE[policy][state]),
);
