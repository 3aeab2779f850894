// Trivial tasks, from create to end, through the runner, compared with popular queues, in turns on the same server; BullMQ in front has a Redis:
// npm run bench -- tasks [2000] [--json]
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startRedis } from '../test/servers/redis.ts';
import { percentile, report } from './measure/measure.ts';
import type { QueueName } from './queues/queues.ts';
import { type Cost, Team, type TeamOptions } from './queues/team.ts';
import type { BenchCase } from './stores/bare.ts';
import { startPostgresCase } from './stores/postgres.ts';

const ROUNDS = 3;
const { positionals } = parseArgs({ options: { json: { type: 'boolean' } }, allowPositionals: true });
const COUNT = Number(positionals.find((word) => /^\d+$/.test(word)) ?? 2_000);
const START_SAMPLES = 100;
const WARM_UP = 0.2;
const SLEEP_MS = 20;
const SLEEPERS_PER_WORKER = 300;
const TEAMS = [1, 4, 10];
const OURS: ReadonlySet<QueueName> = new Set(['whoa', 'raw-loop', 'behind-bullmq']);

type Measured = Cost & { readonly serverMs: number };

await using redis = await startRedis({ appendfsync: 'everysec' });
{
  await using one = await startPostgresCase();
  await compareThroughput(one, ['whoa', 'raw-loop', 'behind-bullmq', 'bullmq', 'pg-boss', 'graphile-worker']);
  await compareStarts(one);
}
await compareTeams();

/** Tasks a second, one worker with 50 slots, in turns. */
async function compareThroughput(one: BenchCase, names: readonly QueueName[]): Promise<void> {
  const costs = new Map<QueueName, Measured[]>(names.map((name) => [name, []]));
  await using stack = new AsyncDisposableStack();
  const teams = new Map<QueueName, Team>();
  for (const name of names)
    teams.set(
      name,
      stack.use(await Team.start(name, name === 'behind-bullmq' ? `${getUrl(one)} ${redis.url}` : getUrl(one))),
    );
  for (const team of teams.values()) await team.run(COUNT * WARM_UP);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, team] of teams) costs.get(name)!.push(await measure(one, team, COUNT));
  }
  const median = (name: QueueName, field: keyof Measured): number =>
    percentile(
      costs.get(name)!.map((cost) => cost[field]),
      0.5,
    );
  const peers = names.filter((name) => !OURS.has(name));
  const fastest = peers.toSorted((a, b) => median(b, 'perSecond') - median(a, 'perSecond'))[0]!;
  for (const name of names.slice(1)) {
    const [ours, bare] = [median('whoa', 'perSecond'), median(name, 'perSecond')];
    const goal = { atLeast: name === 'raw-loop' ? 0.9 : name === 'bullmq' ? 0.6 : 0.8 };
    const cpu = (field: 'serverMs' | 'workerMs'): string =>
      `${median('whoa', field).toFixed(3)} beside ${median(name, field).toFixed(3)}`;
    const more = {
      unit: 'tasks/s',
      serverMs: cpu('serverMs'),
      workerMs: cpu('workerMs'),
      count: COUNT,
      rounds: ROUNDS,
    };
    // Only the faster peer sets the goal; the other is reported.
    const isGoal = name === 'raw-loop' || name === fastest;
    report({ name: `tasks ${one.name} beside ${name}`, ours, bare, goal: isGoal ? goal : { atLeast: 0 }, more });
  }
}

/** From create to start on an idle worker, in turns. */
async function compareStarts(one: BenchCase): Promise<void> {
  await using ours = await Team.start('whoa', getUrl(one), { isTimed: true });
  await using bare = await Team.start('bullmq', redis.url, { isTimed: true });
  const samples = { ours: [] as number[], bare: [] as number[] };
  for (let i = -20; i < START_SAMPLES; i++) {
    for (const [name, team] of [
      ['ours', ours],
      ['bare', bare],
    ] as const) {
      await wait(3 + Math.random() * 5);
      const ms = await team.timeToStart();
      if (i >= 0) samples[name].push(ms);
    }
  }
  for (const [title, share] of [
    ['p50', 0.5],
    ['p95', 0.95],
  ] as const) {
    const figures = { ours: percentile(samples.ours, share), bare: percentile(samples.bare, share) };
    const more = { unit: 'ms', samples: START_SAMPLES };
    report({ name: `create to start ${one.name} ${title}`, ...figures, goal: { atMost: 3 }, more });
  }
}

/** One, four and ten workers: no task is claimed twice, and more workers do not make a task more expensive. */
async function compareTeams(): Promise<void> {
  const costs: Measured[] = [];
  const asleep: number[] = [];
  let name = '';
  for (const workers of TEAMS) {
    await using one = await startPostgresCase();
    name = one.name;
    costs.push(await runTeam(one, { workers }, COUNT * workers));
    if (workers > 4) continue;
    // Fewer slots than the machine can serve: this measures whether workers keep theirs full.
    const { perSecond } = await runTeam(
      one,
      { workers, sleepMs: SLEEP_MS, concurrency: 5 },
      SLEEPERS_PER_WORKER * workers,
    );
    asleep.push(perSecond);
  }
  for (const [i, { claimsPerTask, serverMs, workerMs }] of costs.entries()) {
    const more = { workers: TEAMS[i]!, perSecond: Math.round(costs[i]!.perSecond) };
    const title = `${name}, ${TEAMS[i]} workers`;
    report({ name: `claims per task, ${title}`, ours: claimsPerTask, bare: 1, goal: { atMost: 1.02 }, more });
    if (i === 0) continue;
    const bare = costs[0]!.serverMs + costs[0]!.workerMs;
    const unit = 'ms of CPU, server and workers';
    report({
      name: `CPU per task, ${title}`,
      ours: serverMs + workerMs,
      bare,
      goal: { atMost: 1.15 },
      more: { ...more, unit },
    });
  }
  const more = { unit: 'tasks/s', sleepMs: SLEEP_MS, slotsPerWorker: 5 };
  report({ name: `4 workers beside 1, ${name}`, ours: asleep[1]!, bare: asleep[0]!, goal: { atLeast: 3.5 }, more });
}

/** A worker that has done little spends its time on compiling: all of them work through as much before they are measured. */
async function runTeam(one: BenchCase, options: TeamOptions, count: number): Promise<Measured> {
  await using team = await Team.start('whoa', getUrl(one), options);
  await team.run(count);
  return await measure(one, team, count);
}

async function measure(one: BenchCase, team: Team, count: number): Promise<Measured> {
  const cpu = await one.cpuSeconds();
  const cost = await team.run(count);
  return { ...cost, serverMs: (((await one.cpuSeconds()) - cpu) * 1_000) / count };
}

function getUrl({ config }: BenchCase): string {
  if (!('url' in config) || typeof config.url !== 'string') throw new TypeError('url: expected one address');
  return config.url;
}
