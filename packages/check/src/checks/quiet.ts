import type { Observation } from '../adapter.ts';
import { expect, type GroupCheck, type Scenario } from '../check.ts';
import { begin, expectModelStopped, expectReply, type StartedPrompt, settle, stop, stopDuring } from '../drive-turn.ts';
import { secondKey } from '../stage/script.ts';
import { CLOSES_WHAT_IT_OPENED, STOPS_AT_ONCE, UPDATES_BEFORE_THE_END } from './rules.ts';

/** How long the world outside may take to see what was done before the end. */
const SEEN_MS = 1_000;

/** Cancels a turn, and expects that a call that had not started before does not start: not now, and not a little later. */
async function stopWithout(scenario: Scenario, started: StartedPrompt, key: string): Promise<void> {
  const { witness } = scenario.stage;
  // Agents may start the calls of a reply together; then the second one only takes a moment longer to be seen.
  const hasStarted = await witness.startsSoon(key);
  await stop(scenario, started);
  if (hasStarted) scenario.note('it had started before the cancel');
  else expect(!(await witness.startsSoon(key)), 'it started after the cancel');
}

function describeSeen(seen: Observation): string {
  if (seen.what === 'call') return `call ${seen.said}`;
  if (seen.what === 'text') return `text '${seen.text.slice(0, 30)}'`;
  return seen.what === 'other' ? seen.said : seen.what;
}

export const QUIET_CHECKS: readonly GroupCheck[] = [
  {
    id: 'model-stopped',
    title: 'The request to the model is closed when the turn ends',
    rules: STOPS_AT_ONCE,
    needs: ['cancel', 'model'],
    async run(scenario) {
      const { key } = await stopDuring(scenario, 'stream');
      await expectModelStopped(scenario.stage, key, SEEN_MS);
    },
  },
  {
    id: 'no-further-request',
    title: 'The model is not called again after the cancel',
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
  },
  {
    id: 'no-late-call',
    title: 'A call that the interrupted reply asked for never runs',
    needs: ['cancel', 'model', 'tool'],
    async run(scenario) {
      const started = await begin(scenario, 'call-and-stall');
      await stopWithout(scenario, started, started.key);
    },
  },
  {
    id: 'no-second-call',
    title: 'A call that waited behind the cancelled one never runs',
    needs: ['cancel', 'model', 'tool'],
    async run(scenario) {
      const started = await begin(scenario, 'two-calls');
      await stopWithout(scenario, started, secondKey(started.key));
    },
  },
  {
    id: 'quiet-after-end',
    title: 'A turn sends nothing after its end',
    rules: UPDATES_BEFORE_THE_END,
    needs: ['cancel', 'model', 'tool'],
    async run(scenario) {
      const { turn } = await stopDuring(scenario, 'call');
      await expectReply(scenario, await scenario.connection.open());
      const { seen } = turn;
      const late = seen.slice(seen.findIndex(({ what }) => what === 'end') + 1);
      expect(late.length === 0, `${late.length} more came after the end: ${late.map(describeSeen).join(', ')}`);
    },
  },
  {
    id: 'calls-closed',
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
  },
  {
    id: 'late-effect',
    title: 'A cancelled tool has no effect after the end of the turn',
    rules: STOPS_AT_ONCE,
    needs: ['cancel', 'model', 'tool'],
    async run(scenario) {
      const { key } = await stopDuring(scenario, 'call');
      const { witness } = scenario.stage;
      if (!witness.finish(key)) return;
      await witness.waitForEnd(key, SEEN_MS);
      expect(!witness.hasFinished(key), 'the tool was still running after the end, and then did its work');
    },
  },
];
