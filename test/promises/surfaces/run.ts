import { join } from 'node:path';
import type { Agent, Outcome } from '@whoa/core';
import { createBashTool, createContainment, createFileTools } from '@whoa/tools';
import type { Fixture } from '../fixture.ts';
import { createTestAgent, type TestAgent, type TestAgentOptions } from '../test-agent.ts';
import type { PromptResult, RunningPrompt, Surface } from './surface.ts';

/** A run in this very process. */
export const runSurface: Surface = {
  name: 'a run in this process',
  open(fixture) {
    const { agent, recorder, close } = createLocalAgent(fixture);
    return Promise.resolve({
      start: (prompt) => Promise.resolve(runPrompt({ agent, recorder }, prompt)),
      [Symbol.asyncDispose]: close,
    });
  },
};

/** The cast in this process, with a shell and files. */
export function createLocalAgent(
  { provider, folder }: Fixture,
  options: Partial<TestAgentOptions> = {},
): TestAgent & { readonly close: () => Promise<void> } {
  const containment = createContainment();
  const tools = [
    createBashTool({ cwd: folder, containment }),
    ...createFileTools({ root: folder, undoFolder: join(folder, '.undo') }),
  ];
  return {
    ...createTestAgent({ url: provider.url, folder, tools, ...options }),
    close: async () => containment[Symbol.asyncDispose](),
  };
}

function runPrompt({ agent, recorder }: TestAgent, prompt: string): RunningPrompt {
  const run = recorder.run((agent satisfies Agent).run(prompt));
  return {
    id: run.id,
    cancel: (reason, options) => Promise.resolve(run.cancel(reason, options)),
    cancelReceived: () => Promise.resolve(),
    end: () => run.outcome.then(toResult),
    read: () => run.outcome.then(toResult),
    readText: () => Promise.resolve(run.text),
    history: () => Promise.resolve(recorder.history),
  };
}

function toResult(outcome: Outcome): PromptResult {
  const { status, text, calls } = outcome;
  if (outcome.status !== 'cancelled') return { status, text, calls };
  return { status, text, calls, reason: outcome.reason, report: outcome.stop };
}
