import type { Agent, Outcome } from '@whoa/core';
import { createBashTool, createContainment, createFileTools } from '@whoa/tools';
import { type Cast, type CastOptions, createCast } from '../cast.ts';
import type { Scene } from '../scene.ts';
import type { End, Performance, Surface } from './surface.ts';

/** A run in this very process. */
export const runSurface: Surface = {
  name: 'a run in this process',
  open(scene) {
    const { agent, recorder, close } = castHere(scene);
    return Promise.resolve({
      start: (prompt) => Promise.resolve(perform({ agent, recorder }, prompt)),
      [Symbol.asyncDispose]: close,
    });
  },
};

/** The cast in this process, with a shell and files. */
export function castHere(
  { provider, folder }: Scene,
  options: Partial<CastOptions> = {},
): Cast & { readonly close: () => Promise<void> } {
  const containment = createContainment();
  const tools = [createBashTool({ cwd: folder, containment }), ...createFileTools({ root: folder })];
  return {
    ...createCast({ url: provider.url, folder, tools, ...options }),
    close: async () => containment[Symbol.asyncDispose](),
  };
}

function perform({ agent, recorder }: Cast, prompt: string): Performance {
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
