// Stops the master of a Sentinel trio under load and counts acknowledged writes that are lost:
// npm run long -- redis-failover [failovers of each kind] [part of the name of a kind]
import { setTimeout as wait } from 'node:timers/promises';
import { createRedisStore } from '@whoa/tasks/internal';
import type { RedisStoreOptions } from '../../packages/tasks/src/stores/redis/options.ts';
import { ask, type RedisServerOptions, startRedisSentinels } from '../servers/redis.ts';
import { Ledger, type LedgerReport } from '../tasks/ledger.ts';

interface Kind {
  readonly name: string;
  readonly server: RedisServerOptions;
  readonly store: Partial<RedisStoreOptions>;
}

const fsync = { appendfsync: 'everysec' } as const;
const careful = [
  ['min-replicas-to-write', '1'],
  ['min-replicas-max-lag', '2'],
] as const;
const kinds: readonly Kind[] = [
  { name: 'as usual', server: fsync, store: {} },
  { name: 'replicas: { atLeast: 1 } (WAIT)', server: fsync, store: { replicas: { atLeast: 1 } } },
  { name: 'min-replicas-to-write 1, max-lag 2', server: { ...fsync, config: careful }, store: {} },
  { name: 'both', server: { ...fsync, config: careful }, store: { replicas: { atLeast: 1 } } },
];
/** The master dies; is suspended and resumes; dies while replication is a second behind. */
const faults = ['killed', 'stopped', 'killed, replica 1 s behind'] as const;
type Fault = (typeof faults)[number];
const STOPPED_MS = 6_000;
const BEHIND_MS = 1_000;

const [times = '3', only = ''] = process.argv.slice(2);
for (const kind of kinds.filter(({ name }) => name.includes(only))) {
  for (const fault of faults) {
    for (let i = 0; i < Number(times); i++) {
      const { report, failoverMs } = await failOver(kind, fault);
      const { examples: _, ...counts } = report;
      console.log(JSON.stringify({ kind: kind.name, fault, ...counts, failoverMs }));
    }
  }
}

async function failOver(kind: Kind, fault: Fault): Promise<{ report: LedgerReport; failoverMs: number }> {
  await using sentinels = await startRedisSentinels(kind.server);
  const location = { url: sentinels.urls, sentinel: { name: sentinels.name }, timeoutMs: 2_000, ...kind.store };
  await using store = createRedisStore(location);
  const ledger = new Ledger();
  const working = ledger.work(store, 8);
  await wait(1_500);
  if (fault === 'killed, replica 1 s behind') {
    sentinels.road.hold();
    await wait(BEHIND_MS);
  }
  const from = performance.now();
  if (fault === 'stopped') sentinels.master.process.kill('SIGSTOP');
  else await sentinels.master.kill('SIGKILL');
  while ((await sentinels.masterPort()) !== sentinels.replica.port) await wait(20);
  const failoverMs = Math.round(performance.now() - from);
  if (fault === 'stopped') {
    await wait(Math.max(0, STOPPED_MS - failoverMs));
    // It wakes and still believes to be the master, until it learns otherwise.
    sentinels.master.process.kill('SIGCONT');
  } else await sentinels.master.start();
  await pairedAgain([sentinels.master.port, sentinels.replica.port]);
  await wait(1_500);
  ledger.stop();
  await working;
  await using fresh = createRedisStore(location);
  return { report: await ledger.judge(fresh), failoverMs };
}

/** One of the two follows the other; on a slow machine the Sentinels may have changed their mind meanwhile. */
async function pairedAgain(ports: readonly number[]): Promise<void> {
  for (;;) {
    const answers = await Promise.all(ports.map((port) => ask(port, 'INFO', 'replication')));
    if (answers.some((answer) => answer.includes('role:slave') && answer.includes('master_link_status:up'))) return;
    await wait(50);
  }
}
