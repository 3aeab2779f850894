import { type Check, expect, type Scenario } from '../check.ts';
import { begin, expectCancelled, expectReply, settle, stop } from '../play.ts';
import { promptFor } from '../stage/script.ts';
import { within } from '../within.ts';
import { ENDS_AS_CANCELLED, UNKNOWN_TASK } from './rules.ts';

const promptThenCancel: Check = {
  id: 'one-piece-prompt-first',
  group: 'races',
  title: 'A cancel in the same piece of input as its prompt cancels it',
  rules: ENDS_AS_CANCELLED,
  needs: ['one-piece', 'model'],
  async run(scenario) {
    const key = scenario.stage.makeKey();
    const turn = scenario.conversation.startWithCancel!(promptFor('stream', key), 'prompt-first');
    expectCancelled(scenario, await settle(scenario, turn));
    // An agent that missed the cancel asks its model before it answers another prompt.
    await expectReply(scenario, await scenario.connection.open());
    await expectModelStopped(scenario, key);
  },
};

async function expectModelStopped({ stage, settleMs }: Scenario, key: string): Promise<void> {
  const closed = Promise.all(stage.requestsFor(key).map((request) => request.waitForClose()));
  expect(await within(settleMs, closed), 'the model was asked, and was still replying after the end');
}

const cancelThenPrompt: Check = {
  id: 'one-piece-cancel-first',
  group: 'races',
  title: 'A cancel that came before a prompt, in one piece of input, does not cancel it',
  needs: ['one-piece', 'model'],
  async run(scenario) {
    const turn = scenario.conversation.startWithCancel!(promptFor('reply', scenario.stage.makeKey()), 'cancel-first');
    const { kind, said } = await settle(scenario, turn, 4 * scenario.settleMs);
    expect(kind === 'completed', `the prompt ended as '${kind}' (${said})`);
  },
};

const idleCancel: Check = {
  id: 'idle-cancel',
  group: 'races',
  title: 'A cancel while nothing runs does not cancel the next prompt',
  needs: ['cancel', 'conversation', 'model'],
  async run(scenario) {
    await scenario.conversation.cancel();
    await expectReply(scenario);
    await scenario.conversation.cancel();
    await expectReply(scenario);
  },
};

const doubleCancel: Check = {
  id: 'double-cancel',
  group: 'races',
  title: 'A second cancel changes nothing, and does not reach the next prompt',
  needs: ['cancel', 'model'],
  async run(scenario) {
    const { turn } = await begin(scenario, 'stream');
    await scenario.conversation.cancel();
    await scenario.conversation.cancel();
    expectCancelled(scenario, await settle(scenario, turn));
    await expectReply(scenario);
    const ends = turn.seen.filter(({ what }) => what === 'end').length;
    expect(ends === 1, `the turn ended ${ends} times`);
  },
};

const lateCancel: Check = {
  id: 'late-cancel',
  group: 'races',
  title: 'A cancel after the end of a turn changes neither that turn nor the next',
  needs: ['cancel', 'model'],
  async run(scenario) {
    const turn = scenario.conversation.start(promptFor('reply', scenario.stage.makeKey()));
    const { kind, said } = await settle(scenario, turn, 4 * scenario.settleMs);
    expect(kind === 'completed', `a plain prompt ended as '${kind}' (${said})`);
    await scenario.conversation.cancel();
    await expectReply(scenario);
    const ends = turn.seen.filter(({ what }) => what === 'end').length;
    expect(ends === 1, `the turn ended ${ends} times`);
  },
};

const unknownCancel: Check = {
  id: 'unknown-cancel',
  group: 'races',
  title: 'A cancel of something unknown does no harm',
  rules: UNKNOWN_TASK,
  needs: ['cancel', 'model'],
  async run(scenario) {
    const said = await scenario.connection.cancelUnknown?.();
    if (said !== undefined) scenario.note(said);
    await expectReply(scenario);
  },
};

const stopGoStop: Check = {
  id: 'stop-go-stop',
  group: 'races',
  title: 'Stop, go on, stop, go on: each turn ends as it should',
  needs: ['cancel', 'model'],
  async run(scenario) {
    for (let round = 0; round < 2; round++) {
      await stop(scenario, await begin(scenario, 'stream'));
      await expectReply(scenario);
    }
  },
};

const promptWhileStopping: Check = {
  id: 'prompt-while-stopping',
  group: 'races',
  title: 'A prompt that is sent right after a cancel, before its end, is answered',
  needs: ['cancel', 'conversation', 'model'],
  async run(scenario) {
    const { turn } = await begin(scenario, 'stream');
    await scenario.conversation.cancel();
    const next = scenario.conversation.start(promptFor('reply', scenario.stage.makeKey()));
    expectCancelled(scenario, await settle(scenario, turn));
    const { kind, said } = await settle(scenario, next, 4 * scenario.settleMs);
    expect(kind === 'completed' || kind === 'error', `the next prompt ended as '${kind}' (${said})`);
    if (kind === 'error') {
      scenario.note(`refused: ${said}`);
      await expectReply(scenario);
    }
  },
};

const otherConversation: Check = {
  id: 'other-conversation',
  group: 'races',
  title: 'A cancel does not reach another conversation of the same agent',
  needs: ['cancel', 'model'],
  async run(scenario) {
    const other = await scenario.connection.open();
    const mine = await begin(scenario, 'stream');
    const theirs = await begin(scenario, 'stream', other);
    await stop(scenario, mine);
    const [request] = scenario.stage.requestsFor(theirs.key);
    expect(request?.closedAt === undefined, 'the reply in the other conversation was cut off');
    expect(
      theirs.turn.seen.every(({ what }) => what !== 'end'),
      'the turn in the other conversation ended too',
    );
    await stop(scenario, theirs, other);
  },
};

export const RACE_CHECKS: readonly Check[] = [
  promptThenCancel,
  cancelThenPrompt,
  idleCancel,
  doubleCancel,
  lateCancel,
  unknownCancel,
  stopGoStop,
  promptWhileStopping,
  otherConversation,
];
