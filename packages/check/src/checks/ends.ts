import { expect, type GroupCheck, NotOffered, needsFor } from '../check.ts';
import { within } from '../clock.ts';
import { begin, expectCancelled, expectOneEnd, expectReply, settle, settleOutside, stopDuring } from '../drive-turn.ts';
import type { Action } from '../harness/script.ts';
import { CLOSE_CANCELS, ENDS_AS_CANCELLED, NEVER_AN_ERROR, REQUEST_CANCEL } from './rules.ts';

function cancelWhile(action: Action, id: string, when: string): GroupCheck {
  return {
    id: `cancel-${id}`,
    title: `A turn that is cancelled ${when} ends as cancelled`,
    rules: ENDS_AS_CANCELLED,
    needs: ['cancel', ...needsFor(action)],
    run: async (scenario) => void (await stopDuring(scenario, action)),
  };
}

function neverAnError(action: 'stream' | 'call'): GroupCheck {
  return {
    id: `no-error-${action}`,
    title: `A cancelled ${action === 'call' ? 'call' : 'reply'} is not an error of the turn`,
    rules: NEVER_AN_ERROR,
    needs: ['cancel', 'outcome', ...needsFor(action)],
    async run(scenario) {
      const { turn } = await begin(scenario, action);
      await scenario.conversation.cancel();
      const { kind, detail } = await settle(scenario, turn);
      expect(kind !== 'error', `the turn ended with an error: ${detail}`);
      expect(kind !== 'gone', `the turn had no end: ${detail}`);
    },
  };
}

export const END_CHECKS: readonly GroupCheck[] = [
  cancelWhile('think', 'thinking', 'while the model has not answered yet'),
  cancelWhile('stream', 'streaming', 'while the model streams its reply'),
  cancelWhile('arguments', 'arguments', 'while the model sends the input of a call'),
  cancelWhile('call', 'in-call', 'while a tool runs'),
  cancelWhile('call-then-stream', 'second-reply', 'in the reply after a call that has finished'),
  neverAnError('stream'),
  neverAnError('call'),
  {
    id: 'one-end',
    title: 'A cancelled turn ends exactly once',
    needs: ['cancel', 'model'],
    async run(scenario) {
      const { turn } = await stopDuring(scenario, 'stream');
      // The answer to another prompt comes after everything that was sent before it.
      await expectReply(await scenario.elsewhere());
      expectOneEnd(turn);
    },
  },
  {
    id: 'unresponsive-tool',
    title: 'A turn ends although its tool ignores every request to stop',
    rules: ENDS_AS_CANCELLED,
    needs: ['cancel', 'model', 'tool'],
    async run(scenario) {
      const started = await begin(scenario, 'call-unresponsive');
      await scenario.conversation.cancel();
      expectCancelled(scenario, await settle(scenario, started.turn, 2 * scenario.settleMs));
      await settleOutside(scenario, started);
    },
  },
  {
    id: 'cancel-request',
    title: 'A cancel of the request ($/cancel_request) stops the turn as well',
    rules: REQUEST_CANCEL,
    needs: ['cancel-request', 'model'],
    async run(scenario) {
      const { turn, key } = await begin(scenario, 'stream');
      await scenario.conversation.cancelRequest?.(turn);
      if (!(await within(scenario.settleMs, turn.ended)))
        throw new NotOffered('the agent does not react to $/cancel_request, which the protocol leaves optional');
      const { kind, detail } = await turn.ended;
      expect(kind === 'cancelled' || detail.includes('-32800'), `the turn ended as '${kind}' (${detail})`);
      const [request] = scenario.harness.requestsFor(key);
      expect(request?.closedBy !== 'server', 'the reply of the model was read to its end');
    },
  },
  {
    id: 'close-cancels',
    title: 'Closing a conversation cancels what runs in it, then answers',
    rules: CLOSE_CANCELS,
    needs: ['close', 'model'],
    async run(scenario) {
      const { turn } = await begin(scenario, 'stream');
      await scenario.conversation.close?.();
      expectCancelled(scenario, await settle(scenario, turn));
    },
  },
];
