// Reads the feed of a Postgres store for a campaign, and writes what it got to a file: node feed-reader.ts URL SCHEMA FILE
import { openSync, writeSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { systemWorld } from '@whoa/core/embed';
import { createPostgresStore, FeedConsumer } from '@whoa/tasks/internal';

const [url = '', schema = '', file = ''] = process.argv.slice(2);
const out = openSync(file, 'a');
const store = createPostgresStore({ url, schema, maxConnections: 2 });
const consumer = new FeedConsumer({
  store,
  consumer: 'campaign',
  kinds: ['task.ended', 'question.asked', 'question.answered', 'question.closed'],
  world: systemWorld,
  leaseMs: 500,
  pollMs: 50,
  async onEvents(events) {
    const lines = events.map(
      ({ id, kind, task, question = '' }) => `${process.pid} ${task} ${kind}${question.slice(task!.length)} ${id}\n`,
    );
    writeSync(out, lines.join(''));
    process.send?.('read');
    // So that some are killed between the work and the move.
    if (Math.random() < 0.5) await wait(Math.random() * 4);
    return { events: events.length };
  },
  onError: () => {},
});
await consumer.start();
