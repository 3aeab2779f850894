// A worker whose tasks emit words, each the time at which it was emitted. argv: a store's configuration. Given a name
// instead, it publishes the same words without us.
import { setTimeout as wait } from 'node:timers/promises';
import { createAgent } from '@whoa/core';
import { type Planner, reply } from '@whoa/core/model';
import { createRunner, createTaskStore, type TaskStoreConfig } from '@whoa/tasks';
import { openBare } from '../stores/cases.ts';

/** A request to publish `count` words under each of these names, without us. */
export interface Publish {
  readonly names: readonly string[];
  readonly words: number;
}

/** The pace of a model: some dozens of words a second, unevenly. */
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
const bare = openBare(config);
const runner = createRunner({
  store: createTaskStore(config),
  agents: { speaker: createAgent({ name: 'speaker', planner: speaker }) },
});
// The parent was killed: exit.
process.on('disconnect', () => process.exit());
process.on('message', ({ names, words }: Publish) => {
  for (const name of names) {
    speak(words, (text) => bare.publish(name, text)).catch((error: unknown) => process.emitWarning(error as Error));
  }
});
await runner.serve({ concurrency: 100 });
process.send?.('ready');
