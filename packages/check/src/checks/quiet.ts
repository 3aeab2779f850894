import type { Observation } from '../adapter.ts';
import { expect, type GroupCheck } from '../check.ts';
import { begin, expectModelStopped, expectReply, settle, stop, stopDuring } from '../drive-turn.ts';
import { secondKey } from '../harness/script.ts';
import { CLOSES_WHAT_IT_OPENED, STOPS_AT_ONCE, UPDATES_BEFORE_THE_END } from './rules.ts';

/** How long the world outside may take to see what was done before the end. */
const SEEN_MS = 1_000;

/** A call that had not started before the cancel does not start: not now, and not a little later. */
function neverRuns(id: string, title: string, action: 'call-and-stall' | 'two-calls'): GroupCheck {
  return {
    id,
    title,
    needs: ['cancel', 'model', 'tool'],
    async run(scenario) {
      const { probe } = scenario.harness;
      const started = await begin(scenario, action);
      const key = action === 'two-calls' ? secondKey(started.key) : started.key;
      // Agents may start the calls of a reply together; then the second one only takes a moment longer to be seen.
      const hasStarted = await probe.startsSoon(key);
      await stop(scenario, started);
      if (hasStarted) scenario.note('it had started before the cancel');
      else expect(!(await probe.startsSoon(key)), 'it started after the cancel');
    },
  };
}

function describeObservation(observation: Observation): string {
  if (observation.what === 'call') return `call ${observation.detail}`;
  if (observation.what === 'text') return `text '${observation.text.slice(0, 30)}'`;
  return observation.what === 'other' ? observation.detail : observation.what;
}

export const QUIET_CHECKS: readonly GroupCheck[] = [
  {
    id: 'model-stopped',
    title: 'The request to the model is closed when the turn ends',
    rules: STOPS_AT_ONCE,
    needs: ['cancel', 'model'],
    async run(scenario) {
      const { key } = await stopDuring(scenario, 'stream');
      await expectModelStopped(scenario.harness, key, SEEN_MS);
    },
  },
  {
    id: 'no-further-request',
    title: 'The model is not called again after the cancel',
    rules: STOPS_AT_ONCE,
    needs: ['cancel', 'model', 'tool'],
    async run(scenario) {
      const started = await begin(scenario, 'call');
      const before = scenario.harness.requestsFor(started.key).length;
      await stop(scenario, started);
      await expectReply(await scenario.elsewhere());
      const more = scenario.harness.requestsFor(started.key).length - before;
      expect(more === 0, `the model was asked ${more} more times about the cancelled prompt`);
    },
  },
  neverRuns('no-late-call', 'A call that the interrupted reply asked for never runs', 'call-and-stall'),
  neverRuns('no-second-call', 'A call that waited behind the cancelled one never runs', 'two-calls'),
  {
    id: 'quiet-after-end',
    title: 'A turn sends nothing after its end',
    rules: UPDATES_BEFORE_THE_END,
    needs: ['cancel', 'model', 'tool'],
    async run(scenario) {
      const { turn } = await stopDuring(scenario, 'call');
      await expectReply(await scenario.elsewhere());
      const { observations } = turn;
      const late = observations.slice(observations.findIndex(({ what }) => what === 'end') + 1);
      expect(late.length === 0, `${late.length} more came after the end: ${late.map(describeObservation).join(', ')}`);
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
      for (const observation of turn.observations) {
        if (observation.what === 'end') break;
        if (observation.what !== 'call') continue;
        if (observation.isOpen) open.set(observation.id, observation.detail);
        else open.delete(observation.id);
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
      const { probe } = scenario.harness;
      if (!probe.finish(key)) return;
      await probe.waitForEnd(key, SEEN_MS);
      expect(!probe.hasFinished(key), 'the tool was still running after the end, and then did its work');
    },
  },
];
