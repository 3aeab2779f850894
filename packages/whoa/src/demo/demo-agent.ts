import { type Agent, createAgent, defineTool, type Message, sleep } from '@whoa/core';
import { createScriptedModel, type ScriptedStep } from '@whoa/core/testing';
import { type Containment, createBashTool } from '@whoa/tools';
import { z } from 'zod';

const WORD_MS = 60;
const LOOK_MS = 1_500;
const PUBLISH_MS = 4_000;
const MAX_PUBLISH_MS = 10_000;

const TESTS = 'for n in $(seq 1 24); do echo "test $n passed"; sleep 0.25; done';
const TURNS: readonly (readonly ScriptedStep[])[] = [
  [
    'On it. I look at what has changed and run the tests, both at once. ',
    { call: 'read_changes', input: {} },
    { call: 'bash', input: { command: TESTS } },
  ],
  [
    'All 24 tests passed, so I publish the release. That call must not be cut in half: press Stop while it runs, and it is ',
    'waited for, and nothing else. ',
    { call: 'publish_release', input: { release: '2.4.0' } },
  ],
  [
    'The release is out. Since you are still here: a reply has no side effects, so a stop in the middle of these words closes ',
    'them at once, keeps what was said, and hands it back to the model with the next message. Calls are another matter. One ',
    'that only reads is interrupted; one that runs processes is not over until every process is proved gone; one that ',
    'charges a card or publishes a release is left to finish, and no new one begins. Whatever happens, the report says it. ',
    'That is all I have to say. Send another message, and press Stop earlier.',
  ],
];

export interface DemoAgentOptions {
  readonly containment: Containment;
  readonly cwd: string;
}

/** An agent without a model: it says what it was written to say, but its tools really work. */
export function createDemoAgent({ containment, cwd }: DemoAgentOptions): Agent {
  const readChanges = defineTool({
    name: 'read_changes',
    description: 'Reads what has changed.',
    inputSchema: z.object({}),
    effects: 'read',
    async execute(_, { token }) {
      await sleep(LOOK_MS, { clock: token.clock, token });
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
    model: createScriptedModel([({ messages }) => TURNS[turnOf(messages)] ?? []], { wordMs: WORD_MS }),
    tools: [readChanges, createBashTool({ cwd, containment }), publish],
  });
}

/** Which turn it is since the person said something. */
function turnOf(messages: readonly Pick<Message, 'role'>[]): number {
  const said = messages.findLastIndex(({ role }) => role === 'user');
  return messages.slice(said).filter(({ role }) => role === 'assistant').length;
}
