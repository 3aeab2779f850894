// The agent of these suites: the same one in this process, in a worker, in an editor and in the command. Every tool
// records its real effects in a file that outlives its process.
import { appendFileSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Agent, type AgentOptions, createAgent, defineTool, type Tool } from '@whoa/core';
import { createRecorder } from '@whoa/core/testing';
import { z } from 'zod';
import { loopbackModel } from '../ai-sdk/providers.ts';

/** The log of the tools' effects, one JSON object a line. */
export const EFFECTS = 'effects.log';

export interface TestAgent {
  readonly agent: Agent;
  readonly recorder: ReturnType<typeof createRecorder>;
}

export interface TestAgentOptions extends Omit<Partial<AgentOptions>, 'name' | 'model' | 'planner' | 'tools'> {
  /** Where the model is. */
  readonly url: string;
  /** Where the tools work, and where their effects are written down. */
  readonly folder: string;
  readonly format?: Parameters<typeof loopbackModel>[0];
  /** More tools: a shell, files. */
  readonly tools?: readonly Tool[];
}

export function createTestAgent({ url, folder, format = 'chat', tools = [], ...parts }: TestAgentOptions): TestAgent {
  const recorder = createRecorder({
    onEntry(entry) {
      if (entry.seen !== 'effect') return;
      const line = JSON.stringify({ ...entry, at: machineTime(), pid: process.pid });
      appendFileSync(join(folder, EFFECTS), `${line}\n`);
    },
  });
  const all = [...ownTools(folder), ...tools].map((tool) => recorder.tool(tool));
  const agent = createAgent({
    name: 'tester',
    model: loopbackModel(format, url),
    tools: all,
    hooks: recorder.hooks,
    ...parts,
  });
  return { agent, recorder };
}

/** One clock for all processes of this machine, precise enough that a cause comes before its effect. */
export function machineTime(): number {
  return Number(process.hrtime.bigint());
}

function ownTools(folder: string): Tool[] {
  const plain = { description: 'A tool.', inputSchema: z.object({ q: z.string().optional() }) };
  const read = { ...plain, effects: 'read' as const };
  return [
    defineTool({ ...read, name: 'look', execute: () => ({ content: 'found', details: { secret: 'for people' } }) }),
    defineTool({
      ...read,
      name: 'wait',
      execute: (_input, { signal, update }) => {
        update({ content: 'waited a little' });
        return new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
        );
      },
    }),
    // Returns once a file exists, whatever else happens.
    defineTool({
      ...read,
      name: 'deaf',
      timeoutMs: 600_000,
      execute: async (_input, { callId }) => {
        while (!existsSync(join(folder, `wake-${callId}`))) await pause(10);
        return 'late';
      },
    }),
    defineTool({
      ...plain,
      name: 'pay',
      effects: 'write',
      whenCancelled: 'finish',
      timeoutMs: 20_000,
      async execute(_input, { callId, signal }) {
        appendFileSync(join(folder, 'paid.log'), `${callId} begun\n`);
        while (existsSync(join(folder, 'hold-pay'))) await pause(10);
        signal.throwIfAborted();
        appendFileSync(join(folder, 'paid.log'), `${callId} done\n`);
        return 'paid';
      },
    }),
    defineTool({
      ...plain,
      name: 'book',
      effects: 'write',
      execute(_input, { callId }) {
        writeFileSync(join(folder, `booking-${callId}`), '');
        return 'booked';
      },
      async undo(_result, { callId }) {
        appendFileSync(join(folder, 'undone.log'), `${callId}\n`);
        while (existsSync(join(folder, 'hold-undo'))) await pause(10);
        rmSync(join(folder, `booking-${callId}`));
      },
    }),
  ];
}

/** Does not keep the process alive. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
