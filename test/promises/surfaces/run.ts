import { join } from 'node:path';
import type { Agent, Outcome } from '@whoa/core';
import { createBashTool, createContainment, createFileTools } from '@whoa/tools';
import type { Fixture } from '../fixture.ts';
import { createTestAgent, type TestAgent, type TestAgentOptions } from '../test-agent.ts';
import type { End, Performance, Surface } from './surface.ts';

/** A run in this very process. */
export const runSurface: Surface = {
  name: 'a run in this process',
  open(fixture) {
    const { agent, recorder, close } = createLocalAgent(fixture);
    return Promise.resolve({
      start: (prompt) => Promise.resolve(perform({ agent, recorder }, prompt)),
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

function perform({ agent, recorder }: TestAgent, prompt: string): Performance {
  const run = recorder.run((agent satisfies Agent).run(prompt));
  return {
    id: run.id,
    cancel: (reason, options) => Promise.resolve(run.cancel(reason, options)),
    heard: () => Promise.resolve(),
    end: () => run.outcome.then(endOf),
    read: () => run.outcome.then(endOf),
    shown: () => Promise.resolve(run.text),
    history: () => Promise.resolve(recorder.history),
  };
}

function endOf(outcome: Outcome): End {
  const { status, text, calls } = outcome;
  if (outcome.status !== 'cancelled') return { status, text, calls };
  return { status, text, calls, reason: outcome.reason, report: outcome.stop };
}
