import { setTimeout as wait } from 'node:timers/promises';
import type { ScriptedResponse } from '@whoa/ai-sdk/testing';
import { within } from '../../packages/check/src/clock.ts';
import { QUIET_MS } from '../core/bounds.ts';
import type { Fixture, Lab } from '../core/lab.ts';
import type { Wire } from '../core/peer.ts';
import { callsIn } from '../core/request.ts';
import { no, partly, type Scenario, type Verdict, yes } from '../core/scenario.ts';
import { calls, halfArguments, halfText } from './answers.ts';

const RULE =
  'In every vendor format the library was run on, a provider as strict as the vendor accepts the next request and it is answered.';

/** A library needs a moment to take the result of a call. */
const TAKEN_MS = 100;

interface Cut {
  readonly answer: ScriptedResponse;
  readonly reached: (fixture: Fixture) => Promise<void>;
}

const CUTS: Readonly<Record<'text' | 'arguments' | 'tool' | 'parallel', Cut>> = {
  text: { answer: halfText, reached: (fixture) => fixture.sees('upon') },
  arguments: {
    answer: halfArguments('quick'),
    reached: async ({ provider }) => (await provider.waitForRequest(0)).waitForStall(),
  },
  tool: { answer: calls('polite'), reached: (fixture) => fixture.starts('polite') },
  parallel: {
    answer: calls('quick', 'polite'),
    reached: async (fixture) => {
      await fixture.finishes('quick');
      await fixture.starts('polite');
    },
  },
};

async function stopAt(lab: Lab, cut: keyof typeof CUTS, wire: Wire) {
  const { answer, reached } = CUTS[cut];
  const fixture = await lab.begin({ answers: [answer], wire, tools: (make) => [make.quick(), make.polite()] });
  await reached(fixture);
  const { ending } = await fixture.stop();
  return fixture.next(ending.session);
}

async function judgeNext(lab: Lab, cut: keyof typeof CUTS): Promise<Verdict> {
  const refused: string[] = [];
  for (const wire of lab.peer.wires) {
    const { request, ending } = await stopAt(lab, cut, wire);
    if (request === undefined) refused.push(`${wire}: no request was sent (${ending.says})`);
    else if (request.refusal !== undefined) refused.push(`${wire}: ${request.refusal.message}`);
    else if (!ending.text?.includes('OK')) refused.push(`${wire}: not answered (${ending.says})`);
  }
  const formats = lab.peer.wires.join(', ');
  if (refused.length === 0) return yes(`accepted: ${formats}`);
  return (refused.length < lab.peer.wires.length ? partly : no)(refused.join('; '));
}

const after = (cut: keyof typeof CUTS, what: string): Scenario => ({
  id: `next-after-${cut}`,
  group: 'history',
  expects: `After a stop ${what}, the conversation can continue.`,
  rule: RULE,
  run: (lab) => judgeNext(lab, cut),
});

export const history: readonly Scenario[] = [
  after('text', 'mid-sentence'),
  after('arguments', 'while the arguments of a call arrive'),
  after('tool', 'during a call'),
  after('parallel', 'with one call finished and one running'),
  {
    id: 'not-again',
    group: 'history',
    expects: 'The next turn does not repeat the calls of the stopped one by itself.',
    rule: 'One call had finished, one was stopped. In the next turn, whose reply asks for no call, neither starts again.',
    async run(lab) {
      const fixture = await lab.begin({
        answers: [calls('quick', 'polite')],
        tools: (make) => [make.quick(), make.polite()],
      });
      await fixture.starts('polite');
      await fixture.finishes('quick');
      await wait(TAKEN_MS);
      const { ending } = await fixture.stop();
      await within(QUIET_MS, fixture.start('Go on', { session: ending.session }).ended);
      const again = ['quick', 'polite'].filter((tool) => fixture.probe.countStarts(tool) > 1);
      return again.length === 0 ? yes('nothing was repeated') : no(`repeated without a request: ${again.join(', ')}`);
    },
  },
  {
    id: 'model-told',
    group: 'history',
    expects: 'In the next turn the model learns how the stopped call ended.',
    rule: 'The next request has the call with a result that reports that it was stopped, or that its result is unknown.',
    async run(lab) {
      const { request, ending } = await stopAt(lab, 'tool', lab.peer.wires[0]!);
      if (request === undefined) return no(`no request was sent (${ending.says})`);
      const call = callsIn(request).find(({ tool }) => tool === 'polite');
      if (call === undefined) return no('the call is not in the next request at all');
      if (call.result === undefined) return no('the call has no result in the next request');
      const seen = `the model reads: ${call.result.slice(0, 120)}`;
      return /cancel|abort|interrupt|stopp|unknown/i.test(call.result) ? yes(seen) : partly(seen);
    },
  },
];
