/** The two files of a new tool. */
export interface ScaffoldedTool {
  readonly tool: string;
  readonly test: string;
}

/** Returns the source of a tool that stops when it is cancelled, and of the test that proves it, with TODOs to fill in. */
export function scaffoldTool(name: string): ScaffoldedTool {
  const words = name.split(/[_-]+/).filter((word) => word !== '');
  const Name = words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join('');
  return { tool: toolText(name, Name), test: testText(name, Name) };
}

function toolText(name: string, Name: string): string {
  return `import { defineTool, createInterruptedError, type Tool, type ToolResult } from '@whoa/core';
import { z } from 'zod';

/** Does the work for one item. Pass \`signal\` to everything that accepts one, so that a cancel reaches it. */
export type ${Name}Work = (item: string, signal: AbortSignal) => Promise<string>;

const work: ${Name}Work = async (item, signal) => {
  signal.throwIfAborted();
  return \`\${item}: done\`; // TODO: the work itself.
};

const input = z.object({ items: z.array(z.string()).min(1).max(100).describe('TODO: what it works on') });

/** TODO: what it does, in one sentence. */
export function create${Name}(doWork: ${Name}Work = work): Tool<z.infer<typeof input>> {
  return defineTool({
    name: '${name}',
    description: 'TODO: what it does, for the model.',
    inputSchema: input,
    effects: 'read', // Or 'write', 'execute': those can require an approval.
    replay: 'safe', // Or 'never', if a call that a crash interrupted must not run again.
    timeoutMs: 60_000,
    async execute({ items }, { signal, token, update }) {
      const done: string[] = [];
      // \`content\` is for the model: keep it short. \`details\` are for users and are never sent to a model.
      const soFar = (): ToolResult => ({ content: done.join('\\n'), details: { done: [...done], of: items.length } });
      try {
        for (const item of items) {
          done.push(await doWork(item, signal));
          update(soFar());
        }
        return soFar();
      } catch (error) {
        // Check the token, not the error: aborted work can throw any error.
        if (token.isCancelled) throw createInterruptedError(token, soFar());
        throw error;
      }
    },
  });
}
`;
}

function testText(name: string, Name: string): string {
  return `import { once } from 'node:events';
import { describe, test } from 'node:test';
import type { Tool } from '@whoa/core';
import { createToolContract } from '@whoa/tools/testing';
import { create${Name}, type ${Name}Work } from './${name}.ts';

// Run it with: node --test ${name}.test.ts
describe('${name} stops when you cancel it', () => {
  const cases = createToolContract({
    create() {
      const { promise: busy, resolve: begin } = Promise.withResolvers<void>();
      // The item 'slow' runs until it is cancelled.
      const doWork: ${Name}Work = async (item, signal) => {
        signal.throwIfAborted();
        if (item !== 'slow') return \`\${item}: done\`;
        begin();
        await once(signal, 'abort');
        throw signal.reason;
      };
      return {
        tool: create${Name}(doWork) as Tool,
        input: { items: ['one', 'two'] },
        slow: { input: { items: ['one', 'slow'] }, whenBusy: () => busy },
      };
    },
  });
  for (const { name, run, skip } of cases) test(name, { skip: skip ?? false }, run);
});
`;
}
