// From a word of the model to a reader of another store on the same data, on each bus, beside a bare message:
//   npm run bench -- words [--json]
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { type Agent, createAgent } from '@whoa/core';
import { reply } from '@whoa/core/model';
import { createRunner, createTaskStore, followTask, type TaskStore, type TaskStoreConfig } from '@whoa/tasks';
import { Redis } from 'ioredis';
import pg from 'pg';
import { startPostgres } from '../test/servers/postgres.ts';
import { startRedis } from '../test/servers/redis.ts';
import { percentile, report } from './measure/measure.ts';

const WORDS = 400;
/** Between two words, on average. Not always the same: words in step with the pulse would all wait equally long. */
const GAP_MS = 20;
const LONE_WORDS = 30;
const LONE_GAP_MS = 150;
/** The goals: the median, the 95th percentile, the median of words far apart, and appends a second of a task that talks. */
const GOALS = { own: 1, others: 15, p95: 30, lone: 3, appends: 1.4 };

/** A message without a store, on the same server and at the same time: what the machine does to both. */
interface Bare extends AsyncDisposable {
  send(text: string): void;
  listen(listener: (text: string) => void): void;
}

interface Talk {
  readonly words: number;
  readonly gapMs: number;
}

/** Words that carry the time at which they were said. */
function createTalker({ words, gapMs }: Talk, onWord: (text: string) => void): Agent {
  return createAgent({
    name: 'talker',
    planner: {
      async next(_history, { emit, token }) {
        let said = '';
        for (let i = 0; i < words && !token.isCancelled; i++) {
          const text = `${performance.now()} `;
          said += text;
          emit({ type: 'text', text });
          onWord(text);
          await wait(gapMs * (0.5 + Math.random()));
        }
        return reply(said);
      },
    },
  });
}

interface Stores {
  readonly mine: TaskStore;
  readonly other: TaskStore;
  readonly bare?: Bare | undefined;
}

/** Only words that are said once the reader is there: those before wait for its first read. */
async function measureTalk(
  { mine, other, bare }: Stores,
  talk: Talk,
): Promise<Record<'ours' | 'bare', number[]> & { appends: number }> {
  let appends = 0;
  const counted = new Proxy(mine, {
    get(target, name) {
      if (name === 'append') appends++;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const bareDelays: number[] = [];
  bare?.listen((text) => bareDelays.push(performance.now() - Number(text)));
  const talker = createTalker(talk, (text) => bare?.send(text));
  const runner = createRunner({ store: counted, agents: { talker } });
  const { tenant, id } = await runner.start({ tenant: 'bench', agent: 'talker', input: 'talk' });
  const delays: number[] = [];
  let [rest, joinedAt, endedAt] = ['', Infinity, 0];
  for await (const seen of followTask(other, { tenant, id })) {
    const now = performance.now();
    // Appends that no one was there to see are not those of a watched task.
    if (joinedAt === Infinity) [joinedAt, appends] = [now, 0];
    endedAt = now;
    if (seen.type !== 'entry' || seen.event.type !== 'text') continue;
    const times = (rest + seen.event.text).split(' ');
    rest = times.pop()!;
    for (const at of times) if (Number(at) > joinedAt) delays.push(now - Number(at));
  }
  await runner[Symbol.asyncDispose]();
  return { ours: delays, bare: bareDelays, appends: appends / ((endedAt - joinedAt) / 1_000) };
}

async function measure(bus: string, stores: Stores): Promise<void> {
  const { ours, bare, appends } = await measureTalk(stores, { words: WORDS, gapMs: GAP_MS });
  const lone = await measureTalk(stores, { words: LONE_WORDS, gapMs: LONE_GAP_MS });
  const goal = bus === 'process' ? GOALS.own : GOALS.others;
  const more = {
    p95: percentile(ours, 0.95),
    p95Goal: GOALS.p95,
    words: ours.length,
    appendsPerSecond: appends,
    appendsGoal: GOALS.appends,
    ...(bare.length > 0 && { bareP50: percentile(bare, 0.5), bareP95: percentile(bare, 0.95) }),
    lone: percentile(lone.ours, 0.5),
    loneGoal: GOALS.lone,
  };
  report({
    name: `ms from a word to its reader (${bus})`,
    ours: percentile(ours, 0.5),
    bare: goal,
    goal: { atMost: 1 },
    more,
  });
}

async function measureTwo(bus: string, config: TaskStoreConfig, bare?: Bare): Promise<void> {
  await using mine = createTaskStore(config);
  await using other = createTaskStore(config);
  await measure(bus, { mine, other, bare });
  await bare?.[Symbol.asyncDispose]();
}

async function notifyBare(url: string): Promise<Bare> {
  const [sender, receiver] = [new pg.Client(url), new pg.Client(url)];
  await Promise.all([sender.connect(), receiver.connect()]);
  await receiver.query('LISTEN bare');
  return {
    send: (text) => void sender.query(`SELECT pg_notify('bare', $1)`, [text]),
    listen: (listener) =>
      receiver.removeAllListeners('notification').on('notification', ({ payload }) => listener(payload!)),
    async [Symbol.asyncDispose]() {
      await Promise.all([sender.end(), receiver.end()]);
    },
  };
}

async function publishBare(url: string): Promise<Bare> {
  const [sender, receiver] = [new Redis(url), new Redis(url)];
  await receiver.subscribe('bare');
  return {
    send: (text) => void sender.publish('bare', text),
    listen: (listener) => receiver.removeAllListeners('message').on('message', (_, text: string) => listener(text)),
    [Symbol.asyncDispose]() {
      for (const client of [sender, receiver]) client.disconnect();
      return Promise.resolve();
    },
  };
}

const folder = await mkdtemp(join(tmpdir(), 'whoa-words-'));
try {
  await using memory = createTaskStore({ backend: 'memory' });
  await measure('process', { mine: memory, other: memory });
  await measureTwo('file', { backend: 'sqlite', file: join(folder, 'tasks.db') });
  await using postgres = await startPostgres();
  await measureTwo('postgres', { backend: 'postgres', url: postgres.url }, await notifyBare(postgres.url));
  await using redis = await startRedis();
  const config = { backend: 'postgres', url: postgres.url, schema: 'two', bus: redis.url } as const;
  await measureTwo('redis', config, await publishBare(redis.url));
} finally {
  await rm(folder, { recursive: true });
}
