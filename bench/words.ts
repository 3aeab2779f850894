// From a word of the model to a reader of another store on the same data, on each bus: npm run bench -- words [--json]
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createAgent } from '@whoa/core';
import { reply } from '@whoa/core/model';
import { createRunner, createTaskStore, followTask, type TaskStore, type TaskStoreConfig } from '@whoa/tasks';
import { startPostgres } from '../test/servers/postgres.ts';
import { startRedis } from '../test/servers/redis.ts';
import { percentile, report } from './measure/measure.ts';

const WORDS = 400;
const GAP_MS = 20;
/** The goals: the median, the 95th percentile, and appends a second of a task that talks. */
const GOALS = { own: 1, others: 15, p95: 30, appends: 1.4 };

/** Words that carry the time at which they were said. */
const talker = createAgent({
  name: 'talker',
  planner: {
    async next(_history, { emit, token }) {
      let said = '';
      for (let i = 0; i < WORDS && !token.isCancelled; i++) {
        const text = `${performance.now()} `;
        said += text;
        emit({ type: 'text', text });
        await wait(GAP_MS);
      }
      return reply(said);
    },
  },
});

async function measure(bus: string, { mine, other }: { mine: TaskStore; other: TaskStore }): Promise<void> {
  let appends = 0;
  const counted = new Proxy(mine, {
    get(target, name) {
      if (name === 'append') appends++;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const runner = createRunner({ store: counted, agents: { talker } });
  const { tenant, id } = await runner.start({ tenant: 'bench', agent: 'talker', input: 'talk' });
  const delays: number[] = [];
  let rest = '';
  for await (const seen of followTask(other, { tenant, id })) {
    if (seen.type !== 'entry' || seen.event.type !== 'text') continue;
    const now = performance.now();
    const times = (rest + seen.event.text).split(' ');
    rest = times.pop()!;
    for (const at of times) delays.push(now - Number(at));
  }
  await runner[Symbol.asyncDispose]();
  const [p50, p95] = [percentile(delays, 0.5), percentile(delays, 0.95)];
  const perSecond = appends / ((WORDS * GAP_MS) / 1_000);
  const goal = bus === 'process' ? GOALS.own : GOALS.others;
  const more = {
    p95,
    p95Goal: GOALS.p95,
    words: delays.length,
    appendsPerSecond: perSecond,
    appendsGoal: GOALS.appends,
  };
  report({ name: `ms from a word to its reader (${bus})`, ours: p50, bare: goal, goal: { atMost: 1 }, more });
}

async function measureTwo(bus: string, config: TaskStoreConfig): Promise<void> {
  await using mine = createTaskStore(config);
  await using other = createTaskStore(config);
  await measure(bus, { mine, other });
}

const folder = await mkdtemp(join(tmpdir(), 'whoa-words-'));
try {
  await using memory = createTaskStore({ backend: 'memory' });
  await measure('process', { mine: memory, other: memory });
  await measureTwo('file', { backend: 'sqlite', file: join(folder, 'tasks.db') });
  await using postgres = await startPostgres();
  await measureTwo('postgres', { backend: 'postgres', url: postgres.url });
  await using redis = await startRedis();
  await measureTwo('redis', { backend: 'postgres', url: postgres.url, schema: 'two', bus: redis.url });
} finally {
  await rm(folder, { recursive: true });
}
