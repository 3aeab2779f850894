import { expect, type GroupCheck } from '../check.ts';
import {
  begin,
  expectCancelled,
  expectCompleted,
  expectModelStopped,
  expectOneEnd,
  expectReply,
  settle,
  stop,
  stopDuring,
} from '../drive-turn.ts';
import { promptFor } from '../harness/script.ts';
import { ENDS_AS_CANCELLED, UNKNOWN_TASK } from './rules.ts';

export const RACE_CHECKS: readonly GroupCheck[] = [
  {
    id: 'same-chunk-prompt-first',
    title: 'A cancel in the same chunk as its prompt cancels it',
    rules: ENDS_AS_CANCELLED,
    needs: ['one-piece', 'model'],
    async run(scenario) {
      const key = scenario.harness.makeKey();
      const turn = scenario.conversation.startWithCancel!(promptFor('stream', key), 'prompt-first');
      expectCancelled(scenario, await settle(scenario, turn));
      // An agent that missed the cancel asks its model before it answers another prompt.
      await expectReply(await scenario.elsewhere());
      await expectModelStopped(scenario.harness, key, scenario.settleMs);
    },
  },
  {
    id: 'same-chunk-cancel-first',
    title: 'A cancel sent before a prompt, in the same chunk, does not cancel it',
    needs: ['one-piece', 'model'],
    async run(scenario) {
      const turn = scenario.conversation.startWithCancel!(
        promptFor('reply', scenario.harness.makeKey()),
        'cancel-first',
      );
      await expectCompleted(scenario, turn);
    },
  },
  {
    id: 'idle-cancel',
    title: 'A cancel while nothing runs does not cancel the next prompt',
    needs: ['cancel', 'conversation', 'model'],
    async run(scenario) {
      await scenario.conversation.cancel();
      await expectReply(scenario);
      await scenario.conversation.cancel();
      await expectReply(scenario);
    },
  },
  {
    id: 'double-cancel',
    title: 'A second cancel changes nothing, and does not reach the next prompt',
    needs: ['cancel', 'model'],
    async run(scenario) {
      const { turn } = await begin(scenario, 'stream');
      await scenario.conversation.cancel();
      await scenario.conversation.cancel();
      expectCancelled(scenario, await settle(scenario, turn));
      await expectReply(scenario);
      expectOneEnd(turn);
    },
  },
  {
    id: 'late-cancel',
    title: 'A cancel after the end of a turn changes neither that turn nor the next',
    needs: ['cancel', 'model'],
    async run(scenario) {
      const turn = scenario.conversation.start(promptFor('reply', scenario.harness.makeKey()));
      await expectCompleted(scenario, turn);
      await scenario.conversation.cancel();
      await expectReply(scenario);
      expectOneEnd(turn);
    },
  },
  {
    id: 'unknown-cancel',
    title: 'A cancel of something unknown does no harm',
    rules: UNKNOWN_TASK,
    needs: ['cancel', 'model'],
    async run(scenario) {
      scenario.note(await scenario.connection.cancelUnknown());
      await expectReply(scenario);
    },
  },
  {
    id: 'stop-go-stop',
    title: 'Stop, continue, stop, continue: each turn ends correctly',
    needs: ['cancel', 'model'],
    async run(scenario) {
      for (let round = 0; round < 2; round++) {
        await stopDuring(scenario, 'stream');
        await expectReply(scenario);
      }
    },
  },
  {
    id: 'prompt-while-stopping',
    title: 'A prompt that is sent right after a cancel, before its end, is answered',
    needs: ['cancel', 'conversation', 'model'],
    async run(scenario) {
      const { turn } = await begin(scenario, 'stream');
      await scenario.conversation.cancel();
      const next = scenario.conversation.start(promptFor('reply', scenario.harness.makeKey()));
      expectCancelled(scenario, await settle(scenario, turn));
      const { kind, detail } = await settle(scenario, next, 4 * scenario.settleMs);
      expect(kind === 'completed' || kind === 'error', `the next prompt ended as '${kind}' (${detail})`);
      if (kind === 'error') {
        scenario.note(`refused: ${detail}`);
        await expectReply(scenario);
      }
    },
  },
  {
    id: 'other-conversation',
    title: 'A cancel does not reach another conversation of the same agent',
    needs: ['cancel', 'model'],
    async run(scenario) {
      const other = await scenario.elsewhere();
      const mine = await begin(scenario, 'stream');
      const theirs = await begin(other, 'stream');
      await stop(scenario, mine);
      const [request] = scenario.harness.requestsFor(theirs.key);
      expect(request?.closedAt === undefined, 'the reply in the other conversation was cut off');
      expect(
        theirs.turn.observations.every(({ what }) => what !== 'end'),
        'the turn in the other conversation ended too',
      );
      await stop(other, theirs);
    },
  },
];
