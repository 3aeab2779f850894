// 2,000 readers of one server over HTTP, of 100 tasks that 20 workers run, beside another version of this repository: memory and
// processor time of the server, and how late words arrive.
//   npm run bench -- readers FOLDER [--json]
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startPostgres } from '../test/servers/postgres.ts';
import { percentile, report } from './measure/measure.ts';
import { createTalking, startWords } from './measure/words.ts';

const HERE = join(import.meta.dirname, '..');
const READERS = 2_000;
const TASKS = 100;
const WORKERS = 20;
/** Workers share processes: a machine has not twenty processors. */
const PROCESSES = 4;
const LISTENING = 2;
/** Two words a second: more than 4,000 a second keep one process of readers busy by itself. */
const GAP_MS = 500;
const MEASURED_MS = 10_000;

interface Seen {
  readonly cpuMs: number;
  readonly rss: number;
  readonly words: number;
  readonly p50: number;
  readonly p95: number;
}

async function measure(folder: string): Promise<Seen> {
  await using postgres = await startPostgres({ durable: true });
  const config = { backend: 'postgres', url: postgres.url } as const;
  const ids = await createTalking(folder, config, TASKS);
  using children = new DisposableStack();
  const server = children.use(await startWords({ folder, part: 'serve', config }));
  const { port } = await server.hear<{ port: number }>('listening');
  const talk = async () =>
    children.use(await startWords({ folder, part: 'talk', config, gapMs: GAP_MS, workers: WORKERS / PROCESSES }));
  await Promise.all(Array.from({ length: PROCESSES }, talk));
  const listeners = await Promise.all(
    Array.from({ length: LISTENING }, async () =>
      children.use(await startWords({ folder: HERE, part: 'listen', config })),
    ),
  );
  const each = Array.from({ length: READERS / LISTENING }, (_, i) => ids[i % TASKS]!);
  for (const listener of listeners) listener.send({ ids: each, port });
  await Promise.all(listeners.map((listener) => listener.hear('open')));
  await wait(3_000);
  for (const listener of listeners) await listener.figures();
  const before = await server.figures();
  await wait(MEASURED_MS);
  const after = await server.figures();
  const figures = await Promise.all(listeners.map((listener) => listener.figures()));
  const delays = figures.flatMap((one) => one.delays);
  return {
    cpuMs: after.cpuMs - before.cpuMs,
    rss: after.rss,
    words: figures.reduce((sum, one) => sum + one.words, 0),
    p50: percentile(delays, 0.5),
    p95: percentile(delays, 0.95),
  };
}

const { positionals } = parseArgs({ allowPositionals: true, options: { json: { type: 'boolean' } } });
const [ours, other] = [await measure(HERE), await measure(resolve(positionals[0] ?? '.'))];
const rows = [
  ['p50 of words', 'ms', ours.p50, other.p50],
  ['p95 of words', 'ms', ours.p95, other.p95],
  ['memory of the server', 'MB', ours.rss / 2 ** 20, other.rss / 2 ** 20],
  ['processor of the server', 'cores', ours.cpuMs / MEASURED_MS, other.cpuMs / MEASURED_MS],
  ['words shown', 'words/s', ours.words / (MEASURED_MS / 1_000), other.words / (MEASURED_MS / 1_000)],
] as const;
for (const [name, unit, one, bare] of rows)
  report({
    name: `${READERS} readers: ${name}`,
    ours: one,
    bare,
    goal: unit === 'words/s' ? { atLeast: 0.95 } : { atMost: 1 },
    more: { unit },
  });
