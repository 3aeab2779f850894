import type { Seen } from '../adapter.ts';
import { type Check, expect, type Scenario } from '../check.ts';
import { begin, expectReply, type StartedPrompt, settle, stop } from '../play.ts';
import { secondKey } from '../stage/script.ts';
import { within } from '../within.ts';
import { CLOSES_WHAT_IT_OPENED, STOPS_AT_ONCE, UPDATES_BEFORE_THE_END } from './rules.ts';

/** How long the world outside may take to see what was done before the end. */
const SEEN_MS = 1_000;

const modelStopped: Check = {
  id: 'model-stopped',
  group: 'quiet',
  title: 'The request to the model is closed when the turn ends',
  rules: STOPS_AT_ONCE,
  needs: ['cancel', 'model'],
  async run(scenario) {
    const started = await begin(scenario, 'stream');
    await stop(scenario, started);
    const [request] = scenario.stage.requestsFor(started.key);
    const isClosed = await within(SEEN_MS, request!.waitForClose());
    expect(isClosed, `the model was still replying ${SEEN_MS / 1_000} s after the end`);
  },
};

const noFurtherRequest: Check = {
  id: 'no-further-request',
  group: 'quiet',
  title: 'The model is not asked again after the cancel',
  rules: STOPS_AT_ONCE,
  needs: ['cancel', 'model', 'tool'],
  async run(scenario) {
    const started = await begin(scenario, 'call');
    const before = scenario.stage.requestsFor(started.key).length;
    await stop(scenario, started);
    await expectReply(scenario, await scenario.connection.open());
    const more = scenario.stage.requestsFor(started.key).length - before;
    expect(more === 0, `the model was asked ${more} more times about the cancelled prompt`);
  },
};

const noLateCall: Check = {
  id: 'no-late-call',
  group: 'quiet',
  title: 'A call that the interrupted reply asked for never runs',
  needs: ['cancel', 'model', 'tool'],
  async run(scenario) {
    const started = await begin(scenario, 'call-and-stall');
    await stopWithout(scenario, started, started.key);
  },
};

const noSecondCall: Check = {
  id: 'no-second-call',
  group: 'quiet',
  title: 'A call that waited behind the cancelled one never runs',
  needs: ['cancel', 'model', 'tool'],
  async run(scenario) {
    const started = await begin(scenario, 'two-calls');
    await stopWithout(scenario, started, secondKey(started.key));
  },
};

/** Cancels a turn, and expects that a call that had not started before does not start: not now, and not a little later. */
async function stopWithout(scenario: Scenario, started: StartedPrompt, key: string): Promise<void> {
  const { witness } = scenario.stage;
  // Agents may start the calls of a reply together; then the second one only takes a moment longer to be seen.
  const hasStarted = await witness.startsSoon(key);
  await stop(scenario, started);
  if (hasStarted) scenario.note('it had started before the cancel');
  else expect(!(await witness.startsSoon(key)), 'it started after the cancel');
}

const quietAfterEnd: Check = {
  id: 'quiet-after-end',
  group: 'quiet',
  title: 'Nothing of a turn is sent after its end',
  rules: UPDATES_BEFORE_THE_END,
  needs: ['cancel', 'model', 'tool'],
  async run(scenario) {
    const started = await begin(scenario, 'call');
    await stop(scenario, started);
    await expectReply(scenario, await scenario.connection.open());
    const { seen } = started.turn;
    const late = seen.slice(seen.findIndex(({ what }) => what === 'end') + 1);
    expect(late.length === 0, `${late.length} more came after the end: ${late.map(describeSeen).join(', ')}`);
  },
};

const callsClosed: Check = {
  id: 'calls-closed',
  group: 'quiet',
  title: 'Every call that was shown as running is shown as ended before the turn ends',
  rules: CLOSES_WHAT_IT_OPENED,
  needs: ['cancel', 'calls', 'model', 'tool'],
  async run(scenario) {
    const { turn } = await begin(scenario, 'two-calls');
    await scenario.conversation.cancel();
    await settle(scenario, turn);
    const open = new Map<string, string>();
    for (const seen of turn.seen) {
      if (seen.what === 'end') break;
      if (seen.what !== 'call') continue;
      if (seen.isOpen) open.set(seen.id, seen.said);
      else open.delete(seen.id);
    }
    expect(open.size === 0, `${open.size} calls were left as '${[...open.values()].join("', '")}'`);
  },
};

const lateEffect: Check = {
  id: 'late-effect',
  group: 'quiet',
  title: 'A cancelled tool has no effect after the end of the turn',
  rules: STOPS_AT_ONCE,
  needs: ['cancel', 'model', 'tool'],
  async run(scenario) {
    const started = await begin(scenario, 'call');
    await stop(scenario, started);
    const { witness } = scenario.stage;
    if (!witness.finish(started.key)) return;
    await witness.waitForEnd(started.key, SEEN_MS);
    expect(!witness.hasFinished(started.key), 'the tool was still running after the end, and then did its work');
  },
};

function describeSeen(seen: Seen): string {
  if (seen.what === 'call') return `call ${seen.said}`;
  if (seen.what === 'text') return `text '${seen.text.slice(0, 30)}'`;
  return seen.what === 'other' ? seen.said : seen.what;
}

export const QUIET_CHECKS: readonly Check[] = [
  modelStopped,
  noFurtherRequest,
  noLateCall,
  noSecondCall,
  quietAfterEnd,
  callsClosed,
  lateEffect,
];
