import { type Agent, createAgent, defineTool, type Message, sleep } from '@whoa/core';
import { createScriptedModel, type ScriptedStep } from '@whoa/core/testing';
import { type Containment, createBashTool } from '@whoa/tools';
import { z } from 'zod';

const WORD_MS = 60;
const LOOKUP_MS = 1_500;
const PUBLISH_MS = 4_000;
const MAX_PUBLISH_MS = 10_000;

/** The message that the agent answers by introducing itself. */
export const FIRST_MESSAGE = 'What can you do?';

const INTRODUCTION =
  'I look something up, run real processes, and make one call that must not be interrupted. Press Stop at any moment: the text and ' +
  'results so far are kept, nothing keeps running, and a report says how each call ended. Reload the page while I work, or close it ' +
  'and open it again: only Stop stops me, from any tab. Now send: Ship release 2.4';
const TESTS = 'for n in $(seq 1 24); do echo "test $n passed"; sleep 0.25; done';
const TURNS: readonly (readonly ScriptedStep[])[] = [
  [
    'On it. I will look at the changes and run the tests at the same time. ',
    { call: 'read_changes', input: {} },
    { call: 'bash', input: { command: TESTS } },
  ],
  [
    'All 24 tests passed, so I will publish the release. That call must not be interrupted: press Stop while it runs, and only ',
    'this call is waited for. ',
    { call: 'publish_release', input: { release: '2.4.0' } },
  ],
  [
    'The release is out. Since you are still here: a reply has no side effects, so a stop in the middle of this text ends it ',
    'immediately, keeps the text so far, and gives it to the model with the next message. Calls are different. A call ',
    'that only reads is interrupted; a call that runs processes ends when all its processes are verified gone; a call that ',
    'charges a card or publishes a release may finish, and no new call starts. The report lists what happened to each. ',
    'That is all. Send another message, and press Stop earlier.',
  ],
];

export interface DemoAgentOptions {
  readonly containment: Containment;
  readonly cwd: string;
}

/** An agent with a scripted model and real tools. */
export function createDemoAgent({ containment, cwd }: DemoAgentOptions): Agent {
  const readChanges = defineTool({
    name: 'read_changes',
    description: 'Reads the changes.',
    inputSchema: z.object({}),
    effects: 'read',
    async execute(_, { token }) {
      await sleep(LOOKUP_MS, { clock: token.clock, token });
      return { content: '3 fixes, 1 feature, no breaking change' };
    },
  });
  const publish = defineTool({
    name: 'publish_release',
    description: 'Publishes a release.',
    inputSchema: z.object({ release: z.string() }),
    effects: 'write',
    whenCancelled: 'finish',
    timeoutMs: MAX_PUBLISH_MS,
    async execute({ release }, { token }) {
      await sleep(PUBLISH_MS, { clock: token.clock, token });
      return { content: `${release} is published` };
    },
  });
  return createAgent({
    name: 'demo',
    model: createScriptedModel([({ messages }) => nextTurn(messages)], { wordMs: WORD_MS }),
    tools: [readChanges, createBashTool({ cwd, containment }), publish],
  });
}

function nextTurn(messages: readonly Pick<Message, 'role'>[]): readonly ScriptedStep[] {
  const last = messages.findLastIndex(({ role }) => role === 'user');
  if (last === 0) return [INTRODUCTION];
  // One turn for each reply since the last message.
  return TURNS[messages.slice(last).filter(({ role }) => role === 'assistant').length] ?? [];
}
