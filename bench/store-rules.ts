// The cost of a change to the Lua rules: the time that Redis spends on each operation, for this build and another, in turns on
// one server. Name the other checkout, in which packages/tasks is built: npm run bench -- store-rules FOLDER
import { readFileSync } from 'node:fs';
import { createRedisStore } from '@whoa/tasks/internal';
import { Redis } from 'ioredis';
import { startRedis } from '../test/servers/redis.ts';
import { compareRules, importOther } from './stores/rule-costs.ts';

/** The most that each operation may cost, relative to before. */
const GOALS: Readonly<Record<string, number>> = {
  cancel: 1.1,
  append: 1,
  'create, alone': 1.5,
  'finish, alone': 1.1,
  'take of 100': 1,
};

/** Commands from clients, including those inside a function or script. */
const SENT = /^cmdstat_(?:fcall|fcall_ro|eval|evalsha):calls=\d+,usec=(\d+)/gm;

const other = await importOther();
await using server = await startRedis({ appendfsync: 'everysec' });
const admin = new Redis(server.port, '127.0.0.1');
await using ours = createRedisStore({ url: server.url, prefix: 'ours' });
await using theirs = other.createTaskStore({ backend: 'redis', url: server.url, prefix: 'theirs' });
await compareRules({ ours, theirs, getMicros, unit: 'µs of the server', getGoal: (name) => GOALS[name] ?? 1.05 });
admin.disconnect();

/** Other load interrupts work that lasts for milliseconds, so use the processor time. */
async function getMicros(name: string): Promise<number> {
  if (/^(take|list)/.test(name)) {
    return Number(readFileSync(`/proc/${server.process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1_000;
  }
  const stats = await admin.info('commandstats');
  return [...stats.matchAll(SENT)].reduce((sum, [, micros]) => sum + Number(micros), 0);
}
