import { setTimeout as wait } from 'node:timers/promises';
import type { Fixture, Lab, Settled } from '../core/lab.ts';
import { callsIn } from '../core/request.ts';
import { no, notOffered, partly, type Scenario, yes } from '../core/scenario.ts';
import { calls, halfText } from './answers.ts';

/** The usage that the loopback provider reports for each reply. */
const USAGE = { inputTokens: 11, outputTokens: 20 };

async function stopSentence(lab: Lab, reason?: string): Promise<{ fixture: Fixture } & Settled> {
  const fixture = await lab.begin({ answers: [halfText] });
  await fixture.sees('upon');
  return { fixture, ...(await fixture.stop(reason)) };
}

export const keep: readonly Scenario[] = [
  {
    id: 'text-in-result',
    group: 'keep',
    expects: 'The result of a stopped run has the text so far.',
    rule: 'The text is on the result, in a documented callback or in the messages, not only in the stream.',
    async run(lab) {
      const { ending } = await stopSentence(lab);
      if (ending.text?.includes('upon a time')) return yes('the text so far is there');
      return no(ending.text === undefined ? 'no text is kept' : `the text is "${ending.text}"`);
    },
  },
  {
    id: 'text-in-next',
    group: 'keep',
    expects: 'In the next turn the model sees the half sentence it had said.',
    rule: 'The next request contains the text so far.',
    async run(lab) {
      const { fixture, ending } = await stopSentence(lab);
      const { request, ending: next } = await fixture.next(ending.session);
      if (request === undefined) return no(`no request was sent: ${next.says}`);
      const isThere = JSON.stringify(request.body).includes('upon a time');
      return isThere ? yes('it is in the next request') : no('it is not in the next request');
    },
  },
  {
    id: 'finished-result',
    group: 'keep',
    expects: 'The result of a call that had finished before the stop reaches the model in the next turn.',
    rule: 'Two calls of one reply: one finished, one running. The next request has the result of the first.',
    async run(lab) {
      const fixture = await lab.begin({
        answers: [calls('quick', 'polite')],
        tools: (make) => [make.quick(), make.polite()],
      });
      await fixture.starts('polite');
      await fixture.finishes('quick');
      // The library needs a moment to take the result.
      await wait(100);
      const { ending } = await fixture.stop();
      const { request, ending: next } = await fixture.next(ending.session);
      if (request === undefined) return no(`no request was sent: ${next.says}`);
      if (request.refusal !== undefined) return no(`the next request was rejected: ${request.refusal.message}`);
      const kept = callsIn(request).find(({ tool }) => tool === 'quick')?.result;
      return kept?.includes('quick is done')
        ? yes('it is in the next request')
        : no('the next request does not have it');
    },
  },
  {
    id: 'usage-finished',
    group: 'keep',
    expects: 'The tokens of a reply that was complete before the stop are reported.',
    rule: 'A stop during a call: the result reports at least the tokens that the provider reported.',
    async run(lab) {
      const fixture = await lab.begin({
        answers: [{ ...calls('polite'), usage: USAGE }],
        tools: (make) => [make.polite()],
      });
      await fixture.starts('polite');
      const { ending } = await fixture.stop();
      if (ending.usage === undefined) return no('no usage is reported');
      const { input, output } = ending.usage;
      const seen = `${input} in and ${output} out of ${USAGE.inputTokens} and ${USAGE.outputTokens}`;
      return input >= USAGE.inputTokens && output >= USAGE.outputTokens ? yes(seen) : no(seen);
    },
  },
  {
    id: 'usage-cut',
    group: 'keep',
    expects:
      'The input tokens that a provider reports at the beginning of a reply are counted, although the reply was cut.',
    rule: 'Anthropic format, stopped mid-sentence: the result reports the input tokens.',
    async run(lab) {
      if (!lab.peer.wires.includes('anthropic'))
        return notOffered('it was not run on this format, which alone reports early');
      const fixture = await lab.begin({ answers: [halfText], wire: 'anthropic' });
      await fixture.sees('upon');
      const { ending } = await fixture.stop();
      if (ending.usage === undefined) return no('no usage is reported');
      return ending.usage.input >= USAGE.inputTokens
        ? yes(`${ending.usage.input} in`)
        : no(`${ending.usage.input} in of ${USAGE.inputTokens}`);
    },
  },
  {
    id: 'reason',
    group: 'keep',
    expects: 'The result shows why the run was stopped.',
    rule: 'The reason that was given with the cancel is in the result or in the error.',
    async run(lab) {
      const reason = 'lunch break';
      const { ending } = await stopSentence(lab, reason);
      if (ending.reason?.includes(reason)) return yes('the reason is there');
      return ending.reason === undefined ? no('no reason is reported') : partly(`the reason is "${ending.reason}"`);
    },
  },
];
