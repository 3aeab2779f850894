import type { Tool } from '@whoa/core';
import { type Model, ModelError, type ModelPart } from '@whoa/core/model';
import { type AnyMessage, findUnmatched } from './found.ts';
import type { RunFacts } from './run-oracle.ts';
import { type Workshop, wait } from './run-tools.ts';

const FAULTS = [
  'retry',
  'fails',
  'hangs',
  'deaf',
  'same-id',
  'cut-call',
  'bad-arguments',
  'bad-arguments',
  'no-finish',
  'unknown-tool',
  'deaf-end',
] as const;
/** Arguments that no tool here accepts. */
const BAD: readonly unknown[] = ['{"n":', [1], 'x', 5, null, {}];

const calls = { last: 0 };

/** A model that says and calls what it likes, and fails in most of the ways in which models do. Without tools it only answers. */
export function createRandomModel(workshop: Workshop, tools: readonly Tool[], facts: RunFacts): Model {
  const { clock, dice, found } = workshop;
  let turns = 0;
  async function* reply(signal: AbortSignal): AsyncGenerator<ModelPart> {
    const isLast = tools.length === 0 || ++turns > 2 + dice.below(2);
    const fault = !isLast && dice.chance(0.25) ? dice.pick(FAULTS) : undefined;
    if (fault !== undefined) found.count(fault);
    if (fault === 'retry') throw new ModelError('overloaded', { isRetryable: true });
    for (let words = 1 + dice.below(3); words > 0; words--) {
      if (!isLast && dice.chance(0.3)) await wait(clock, dice.pick([1, 20]), signal);
      yield { type: 'text', text: `word ${words} ` };
      workshop.act('text');
    }
    if (fault === 'fails') throw new Error('the model failed');
    if (fault === 'hangs') await wait(clock, 1_000_000, signal);
    if (fault === 'deaf') await new Promise(() => {});
    for (let left = isLast ? 0 : 1 + dice.below(3); left > 0; left--) {
      const callId = fault === 'same-id' ? 'same' : `c${++calls.last}`;
      const tool = fault === 'unknown-tool' ? 'invented' : dice.pick(tools).name;
      yield { type: 'call-start', callId, tool };
      if (fault === 'cut-call') await wait(clock, 1_000_000, signal);
      yield {
        type: 'call-end',
        callId,
        tool,
        input: fault === 'bad-arguments' ? dice.pick(BAD) : { n: left, input: 'go' },
      };
      workshop.act('call');
    }
    if (fault === 'no-finish') return;
    yield { type: 'usage', inputTokens: 5, outputTokens: 5 };
    yield { type: 'finish', stopReason: 'stop' };
    if (fault === 'deaf-end') await new Promise(() => {});
  }
  return {
    name: 'random',
    stream(request, { signal }) {
      if (tools.length > 0) workshop.starts('model stream');
      const messages = request.messages as readonly AnyMessage[];
      const unmatched = findUnmatched(messages);
      found.expect(unmatched === undefined, `a request has ${unmatched}`);
      found.expect(messages[0]?.role === 'user', 'a request does not start with a user message');
      facts.requests.push(messages.length);
      workshop.act('model');
      return reply(signal);
    },
  };
}
