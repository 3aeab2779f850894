// A cancel in process A until the token fires in process B: on Postgres alone, beside another version of this repository
// if its folder is given; and with Redis as the bus, beside a bare UPDATE and a PUBLISH.
//   npm run bench -- cancel-bus [FOLDER] [--json]
import { type ChildProcess, fork } from 'node:child_process';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { TaskStoreConfig } from '@whoa/tasks';
import { startPostgres } from '../test/servers/postgres.ts';
import { startRedis } from '../test/servers/redis.ts';
import { percentile, report } from './measure/measure.ts';

const SAMPLES = 400;
const WARM_UP = 30;
const HERE = join(import.meta.dirname, '..');

type Message = { readonly type: string; readonly at: string; readonly id: string };

/** One way from A to B. */
interface Way extends AsyncDisposable {
  /** Returns how long it took, in milliseconds. */
  sample(): Promise<number>;
}

function hear(child: ChildProcess, type: string): Promise<Message> {
  return new Promise((done) => {
    const look = (message: Message): void => {
      if (message.type !== type) return;
      child.off('message', look);
      done(message);
    };
    child.on('message', look);
  });
}

/** Two processes with a store of the repository in `folder`. */
async function startStores(folder: string, config: TaskStoreConfig): Promise<Way> {
  const start = async (part: 'cancel' | 'work'): Promise<ChildProcess> => {
    const child = fork(join(import.meta.dirname, 'children/cancel-bus.ts'), [folder, JSON.stringify(config), part], {
      execArgv: ['--conditions=@whoa/source', '--no-warnings'],
    });
    await hear(child, 'ready');
    return child;
  };
  const [a, b] = [await start('cancel'), await start('work')];
  return {
    async sample() {
      const created = hear(a, 'created');
      a.send({ type: 'create' });
      const { id } = await created;
      const working = hear(b, 'working');
      b.send({ type: 'run', id });
      await working;
      await wait(2 + Math.random() * 4);
      const [asked, fired, ended] = [hear(a, 'asked'), hear(b, 'fired'), hear(b, 'ended')];
      a.send({ type: 'cancel', id });
      const ms = Number(BigInt((await fired).at) - BigInt((await asked).at)) / 1e6;
      await ended;
      return ms;
    },
    [Symbol.asyncDispose]: () => {
      for (const child of [a, b]) child.kill();
      return Promise.resolve();
    },
  };
}

/** The same with an UPDATE of one row, then a PUBLISH. */
async function startBare(url: string, redisUrl: string): Promise<Way> {
  const start = async (part: 'cancel' | 'work'): Promise<ChildProcess> => {
    const child = fork(join(import.meta.dirname, 'children/cancel-bare.ts'), [url, redisUrl, part]);
    await hear(child, 'ready');
    return child;
  };
  const [a, b] = [await start('cancel'), await start('work')];
  return {
    async sample() {
      await wait(2 + Math.random() * 4);
      const [asked, fired] = [hear(a, 'asked'), hear(b, 'fired')];
      a.send({ type: 'cancel' });
      return Number(BigInt((await fired).at) - BigInt((await asked).at)) / 1e6;
    },
    [Symbol.asyncDispose]: () => {
      for (const child of [a, b]) child.kill();
      return Promise.resolve();
    },
  };
}

/** Samples in turns. */
async function compare(
  name: string,
  goal: { atMost: number },
  open: () => Promise<readonly [Way, Way]>,
): Promise<void> {
  const [ours, bare] = await open();
  const samples: [number[], number[]] = [[], []];
  for (let i = 0; i < WARM_UP + SAMPLES; i++)
    for (const [which, way] of [ours, bare].entries()) {
      const ms = await way.sample();
      if (i >= WARM_UP) samples[which]!.push(ms);
    }
  for (const [title, share] of [
    ['p50', 0.5],
    ['p95', 0.95],
  ] as const)
    report({
      name: `${name} ${title}`,
      ours: percentile(samples[0], share),
      bare: percentile(samples[1], share),
      goal: share === 0.5 ? goal : { atMost: 10 },
      more: { unit: 'ms', samples: SAMPLES },
    });
  for (const way of [ours, bare]) await way[Symbol.asyncDispose]();
}

const { positionals } = parseArgs({ allowPositionals: true, options: { json: { type: 'boolean' } } });
await using postgres = await startPostgres({ durable: true });
await using redis = await startRedis({ appendfsync: 'none' });
const config = { backend: 'postgres', url: postgres.url } as const;
const [before] = positionals;
if (before !== undefined)
  await compare('cancel, Postgres alone, beside another version', { atMost: 1.2 }, async () => [
    await startStores(HERE, { ...config, schema: 'now' }),
    await startStores(resolve(before), { ...config, schema: 'before' }),
  ]);
await compare('cancel, Redis as the bus, beside UPDATE and PUBLISH', { atMost: 1.3 }, async () => [
  await startStores(HERE, { ...config, bus: redis.url }),
  await startBare(postgres.url, redis.url),
]);
