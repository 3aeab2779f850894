import { type Agent, createAgent, defineTool, sleep } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { type Containment, createBashTool } from '@whoa/tools';
import { z } from 'zod';
import { createScript } from './script.ts';

const WORD_MS = 60;
const LOOKUP_MS = 1_500;
const PUBLISH_MS = 4_000;
const MAX_PUBLISH_MS = 10_000;

export interface DemoAgentOptions {
  readonly containment: Containment;
  readonly cwd: string;
}

/** An agent with a scripted model and real tools. Each run has its own script, which follows what happens in the run. */
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
  const tools = [readChanges, createBashTool({ cwd, containment }), publish];
  const createOne = (): Agent => {
    const { nextReply, hooks } = createScript();
    return createAgent({ name: 'demo', model: createScriptedModel([nextReply], { wordMs: WORD_MS }), tools, hooks });
  };
  return { ...createOne(), run: (input, options) => createOne().run(input, options) };
}
