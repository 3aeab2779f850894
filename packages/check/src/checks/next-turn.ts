import { expect, type GroupCheck, needsFor, type Scenario } from '../check.ts';
import { expectReply, stopDuring } from '../drive-turn.ts';
import { type Action, promptFor, toReplyText } from '../harness/script.ts';

const needs = ['cancel', 'conversation', 'model'] as const;

function accepted(action: Action, id: string, when: string): GroupCheck {
  return {
    id: `next-valid-${id}`,
    title: `After a cancel ${when}, the next request is one that strict providers accept`,
    needs: ['cancel', 'conversation', ...needsFor(action)],
    async run(scenario) {
      const { body, refusal } = await nextRequest(scenario, action);
      expect(refusal === undefined, `the provider refused it: ${refusal?.message}`);
      const broken = brokenArguments(JSON.parse(body));
      expect(broken.length === 0, `the input of a call in it is no JSON: ${broken[0]}`);
    },
  };
}

/** Inputs of calls that are not JSON: some providers refuse them, with others they fail when the call is shown again. */
function brokenArguments(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const { arguments: text } = value as { readonly arguments?: unknown };
  const own = typeof text === 'string' && !isJson(text) ? [text] : [];
  return [...own, ...Object.values(value).flatMap(brokenArguments)];
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Cancels a turn during an action and returns what the model sees with the next prompt. */
async function nextRequest(scenario: Scenario, action: Action) {
  const { key } = await stopDuring(scenario, action);
  const next = scenario.harness.makeKey();
  const { kind, detail } = await scenario.conversation.start(promptFor('reply', next)).ended;
  const [request] = scenario.harness.requestsFor(next);
  expect(request !== undefined, `the next prompt ended as '${kind}' (${detail}) without asking the model`);
  const { body, refusal } = request;
  expect(refusal !== undefined || kind === 'completed', `the next prompt ended as '${kind}' (${detail})`);
  return { key, body: JSON.stringify(body), refusal };
}

export const NEXT_TURN_CHECKS: readonly GroupCheck[] = [
  {
    id: 'next-works',
    title: 'The next prompt in the same conversation is answered',
    needs: [...needs, 'tool'],
    async run(scenario) {
      await stopDuring(scenario, 'call');
      await expectReply(scenario);
    },
  },
  accepted('stream', 'text', 'mid-reply'),
  accepted('arguments', 'arguments', 'while the input of a call arrives'),
  accepted('call', 'call', 'during a call'),
  accepted('two-calls', 'two-calls', 'with two calls open'),
  {
    id: 'next-knows-prompt',
    title: 'The cancelled prompt is still part of the conversation',
    needs,
    async run(scenario) {
      const { key, body } = await nextRequest(scenario, 'think');
      expect(body.includes(key), 'the cancelled prompt is not in the next request');
    },
  },
  {
    id: 'next-knows-text',
    title: 'The model sees what it had said before the cancel',
    needs,
    async run(scenario) {
      const { key, body } = await nextRequest(scenario, 'stream');
      expect(body.includes(toReplyText(key)[0].trim()), 'the words that were shown are not in the next request');
    },
  },
  {
    id: 'next-knows-call',
    title: 'The model sees that its call was cancelled',
    needs: [...needs, 'tool'],
    async run(scenario) {
      const { key, body } = await nextRequest(scenario, 'call');
      const rest = body.slice(body.lastIndexOf(key));
      expect(body.includes(key), 'nothing of the cancelled turn is in the next request');
      expect(
        /cancel|abort|interrupt|stopped|terminated|killed|denied|rejected|not (?:run|finish|complete)/i.test(rest),
        'nothing in the next request reports it',
      );
    },
  },
  {
    id: 'next-keeps-finished',
    title: 'A call that had finished before the cancel is kept with its result',
    needs: [...needs, 'tool'],
    async run(scenario) {
      const { key, body } = await nextRequest(scenario, 'call-then-stream');
      expect(body.includes(`probe ${key} finished`), 'the output of the finished call is not in the next request');
    },
  },
];
