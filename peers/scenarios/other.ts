// Not about a stop in the narrow sense. These are here because some library is better at them than ours.

import { within } from '../../packages/check/src/clock.ts';
import { startHarness } from '../../packages/check/src/harness/harness.ts';
import { WAIT_MS } from '../core/bounds.ts';
import { missing, no, partly, type Scenario, yes } from '../core/scenario.ts';
import { PeerTools } from '../core/tools.ts';
import { calls } from './answers.ts';

const AT_ONCE_MS = 500;

export const other: readonly Scenario[] = [
  {
    id: 'at-once',
    group: 'other',
    expects: 'Even when a tool ignores its signal, an ordinary stop ends immediately.',
    rule: `The run ends within ${AT_ONCE_MS} ms of the cancel that the documentation shows for a stop button.`,
    async run(lab) {
      const fixture = await lab.begin({ answers: [calls('deaf')], tools: (make) => [make.deaf()] });
      await fixture.starts('deaf');
      fixture.cancel();
      const settled = await fixture.settle();
      if (settled === undefined) return no(`it had not ended after ${WAIT_MS / 1000} s`);
      if (settled.afterMs <= AT_ONCE_MS) return yes('it was over at once');
      return partly(`it ended after ${(settled.afterMs / 1000).toFixed(1)} s`);
    },
  },
  {
    id: 'pause',
    group: 'other',
    expects: 'A run that needs approval can end, and continue later without having waited in a process.',
    rule: 'The first part ends with the question. A later call continues it with an approval, and the tool runs exactly once.',
    async run(lab) {
      if (lab.peer.pause === undefined) return missing(lab.peer, 'pause', 'the question is asked while the run waits');
      const paid = { parts: [{ text: 'Paid.' }] };
      await using harness = await startHarness(
        () =>
          ({ index }) =>
            index === 0 ? calls('pay') : paid,
      );
      const { provider, probe } = harness;
      const tools = [{ ...new PeerTools(probe.port).quick('pay'), needsApproval: true }];
      const run = await lab.peer.pause({ url: provider.url, wire: lab.peer.wires[0]!, tools });
      if (!run.paused || probe.hasStarted('pay')) return no('it did not pause');
      await within(WAIT_MS, run.resume());
      const count = probe.countStarts('pay');
      return count === 1 ? yes('it continued, and the tool ran once') : no(`the tool ran ${count} times`);
    },
  },
  {
    id: 'time-travel',
    group: 'other',
    expects: 'A conversation can return to an earlier point and continue differently from there.',
    rule: 'The library lists the earlier points of a conversation and continues from one: its next request has the question, but not the first reply.',
    async run(lab) {
      if (lab.peer.travel === undefined)
        return missing(lab.peer, 'time-travel', 'the application would cut the list of messages itself');
      await using harness = await startHarness(() => ({ index }) => ({
        parts: [{ text: index === 0 ? 'The left way.' : 'The right way.' }],
      }));
      const { url, requests } = harness.provider;
      const text = await lab.peer.travel({ url, wire: lab.peer.wires[0]!, tools: [] });
      const said = JSON.stringify(requests.at(-1)?.body ?? '');
      const isBack = requests.length === 2 && !said.includes('left way') && text.includes('right');
      return isBack ? yes('it continued from the earlier point') : no(`it said "${text}"`);
    },
  },
  {
    id: 'typed-output',
    group: 'other',
    expects: 'A run can return an object that fits a schema.',
    rule: 'The library is given a schema with the field `city` and returns the object.',
    async run(lab) {
      if (lab.peer.typed === undefined) return missing(lab.peer, 'typed-output', 'a run returns text');
      const json = JSON.stringify({ city: 'Oslo' });
      // Some ask for the object as text, some as the arguments of a call.
      await using harness = await startHarness(() => ({ body }) => {
        const tools = JSON.stringify(body['tools'] ?? '');
        const name = /"name":"(extract[^"]*|[^"]*output[^"]*|response[^"]*)"/i.exec(tools)?.[1];
        return { parts: [name === undefined ? { text: json } : { call: name, id: 'call_1', input: { city: 'Oslo' } }] };
      });
      const { url } = harness.provider;
      const object = await lab.peer.typed({ url, wire: lab.peer.wires[0]!, tools: [] });
      return JSON.stringify(object) === json ? yes('it returned the object') : no(JSON.stringify(object));
    },
  },
  {
    id: 'on-npm',
    group: 'other',
    expects: 'It can be installed from npm.',
    rule: 'Its adapter runs what npm installed.',
    run: (lab) =>
      Promise.resolve(
        lab.module.endsWith('.ts') ? no('it is not published yet; its sources were run') : yes('installed'),
      ),
  },
];
