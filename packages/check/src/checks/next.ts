import { type Check, expect, type Scenario } from '../check.ts';
import { begin, expectReply, stop } from '../play.ts';
import { type Action, wordsOf } from '../stage/script.ts';

const needs = ['cancel', 'conversation', 'model'] as const;

function accepted(action: Action, id: string, when: string): Check {
  return {
    id: `next-valid-${id}`,
    group: 'next',
    title: `After a cancel ${when}, the next request is one that strict providers accept`,
    needs: action.startsWith('call') || action === 'two-calls' ? [...needs, 'tool'] : needs,
    async run(scenario) {
      const { body, refusal } = await nextRequest(scenario, action);
      expect(refusal === undefined, `the provider refused it: ${refusal?.message}`);
      const broken = brokenArguments(JSON.parse(body));
      expect(broken.length === 0, `the input of a call in it is no JSON: ${broken[0]}`);
    },
  };
}

/** Inputs of calls that are no JSON: some providers refuse them, with others they fail when the call is shown again. */
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

/** Cancels a turn in the middle of an action and returns what the model is told with the next prompt. */
async function nextRequest(
  scenario: Scenario,
  action: Action,
): Promise<{ key: string; body: string; refusal: { message: string } | undefined }> {
  const started = await begin(scenario, action);
  await stop(scenario, started);
  const next = scenario.stage.makeKey();
  const turn = scenario.conversation.start(`Do this check and nothing else: check-${next}-reply`);
  const request = await Promise.race([scenario.stage.waitForRequest(next), turn.ended.then(() => undefined)]);
  expect(
    request !== undefined,
    `the next prompt ended as '${(await turn.ended).kind}' (${(await turn.ended).said}) without asking the model`,
  );
  const { kind, said } = await turn.ended;
  const { refusal } = request;
  expect(refusal !== undefined || kind === 'completed', `the next prompt ended as '${kind}' (${said})`);
  return { key: started.key, body: JSON.stringify(request.body), refusal };
}

const works: Check = {
  id: 'next-works',
  group: 'next',
  title: 'The next prompt in the same conversation is answered',
  needs: [...needs, 'tool'],
  async run(scenario) {
    await stop(scenario, await begin(scenario, 'call'));
    await expectReply(scenario);
  },
};

const knowsText: Check = {
  id: 'next-knows-text',
  group: 'next',
  title: 'The model is told what it had said before the cancel',
  needs,
  async run(scenario) {
    const { key, body } = await nextRequest(scenario, 'stream');
    expect(body.includes(wordsOf(key)[0].trim()), 'the words that were shown are not in the next request');
  },
};

const knowsPrompt: Check = {
  id: 'next-knows-prompt',
  group: 'next',
  title: 'The cancelled prompt is still part of the conversation',
  needs,
  async run(scenario) {
    const { key, body } = await nextRequest(scenario, 'think');
    expect(body.includes(key), 'the cancelled prompt is not in the next request');
  },
};

const knowsCall: Check = {
  id: 'next-knows-call',
  group: 'next',
  title: 'The model is told that its call was cancelled',
  needs: [...needs, 'tool'],
  async run(scenario) {
    const { key, body } = await nextRequest(scenario, 'call');
    const rest = body.slice(body.lastIndexOf(key));
    expect(body.includes(key), 'nothing of the cancelled turn is in the next request');
    expect(
      /cancel|abort|interrupt|stopped|terminated|killed|denied|rejected|not (?:run|finish|complete)/i.test(rest),
      'nothing in the next request says so',
    );
  },
};

const keepsFinished: Check = {
  id: 'next-keeps-finished',
  group: 'next',
  title: 'A call that had finished before the cancel is kept with its result',
  needs: [...needs, 'tool'],
  async run(scenario) {
    const { key, body } = await nextRequest(scenario, 'call-then-stream');
    expect(body.includes(`witness ${key} finished`), 'the output of the finished call is not in the next request');
  },
};

export const NEXT_CHECKS: readonly Check[] = [
  works,
  accepted('stream', 'text', 'in the middle of a reply'),
  accepted('arguments', 'arguments', 'in the middle of the input of a call'),
  accepted('call', 'call', 'in the middle of a call'),
  accepted('two-calls', 'two-calls', 'with two calls open'),
  knowsPrompt,
  knowsText,
  knowsCall,
  keepsFinished,
];
