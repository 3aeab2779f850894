import { describeError } from '@whoa/core/internal';
import type { Runner, TaskEngine, TaskStore } from '@whoa/tasks';
import { agentNames } from '../agent/open-agents.ts';
import type { WhoaConfig } from '../config/config.ts';
import type { Screen } from '../terminal/screen.ts';
import { oneLine } from '../terminal/text/plain-text.ts';

export interface EngineSettings {
  readonly config: WhoaConfig;
  readonly store: TaskStore;
  readonly screen: Screen;
}

/** A lost connection fails with every attempt. The same message is printed again only after this time. */
const REPEAT_MS = 30_000;
const MAX_LINE_CHARACTERS = 300;

/** Opens the engine of the configuration. Without one, all tasks come from the store itself. */
export async function openEngine({ config, store, screen }: EngineSettings): Promise<TaskEngine> {
  if (config.engine === undefined) return createStoreEngine();
  const printed = new Map<string, number>();
  const onError = (error: unknown): void => {
    const message = oneLine(describeError(error), MAX_LINE_CHARACTERS);
    const now = performance.now();
    for (const [text, at] of printed) if (now - at > REPEAT_MS) printed.delete(text);
    if (printed.has(message)) return;
    printed.set(message, now);
    screen.data({ type: 'engine-error', message });
    if (!screen.asJson) screen.note(`✘ engine: ${message}`);
  };
  return config.engine({ store, agents: agentNames(config), onError });
}

function createStoreEngine(): TaskEngine {
  let runner: Runner | undefined;
  return {
    serve: (served, options) => (runner = served).serve(options),
    isReady: () => Promise.resolve(true),
    close: async (mode) => runner?.stop(mode),
    [Symbol.asyncDispose]: async () => runner?.stop('now'),
  };
}
