// A worker whose tasks say words, each of which is the moment when it was said. argv: a store's configuration. It publishes the
// same words without us when it is told a name instead.
import { setTimeout as wait } from 'node:timers/promises';
import { createAgent } from '@whoa/core';
import { type Planner, reply } from '@whoa/core/model';
import { createRunner, createTaskStore, type TaskStoreConfig } from '@whoa/tasks';
import { bareOf } from '../stores/cases.ts';

/** What is asked of it: so many words under each of these names, without us. */
export interface Publish {
  readonly names: readonly string[];
  readonly words: number;
}

/** As a model speaks: some dozens of words a second, not evenly. */
const WORD_MS = 40;

async function speak(words: number, say: (text: string) => unknown): Promise<void> {
  for (let i = 0; i < words; i++) {
    await wait(Math.random() * 2 * WORD_MS);
    await say(`${process.hrtime.bigint()} `);
  }
}

const speaker: Planner = {
  async next(history, { emit }) {
    const [{ content }] = history as unknown as [{ content: string }];
    await speak(Number(content), (text) => emit({ type: 'text', text }));
    return reply('done');
  },
};

const config = JSON.parse(process.argv[2] ?? '{}') as TaskStoreConfig;
const bare = bareOf(config);
const runner = createRunner({
  store: createTaskStore(config),
  agents: { speaker: createAgent({ name: 'speaker', planner: speaker }) },
});
// The parent was killed: leave nothing behind.
process.on('disconnect', () => process.exit());
process.on('message', ({ names, words }: Publish) => {
  for (const name of names) {
    speak(words, (text) => bare.publish(name, text)).catch((error: unknown) => process.emitWarning(error as Error));
  }
});
await runner.serve({ concurrency: 100 });
process.send?.('ready');
