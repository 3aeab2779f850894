import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { TaskStoreConfig } from '@whoa/tasks';
import { Redis } from 'ioredis';
import { startPostgres } from '../../test/servers/postgres.ts';
import { query } from '../../test/servers/query.ts';
import { startRedis } from '../../test/servers/redis.ts';

/** A server that reports how long each of its steps took: a script or a statement. */
export interface TimedServer extends AsyncDisposable {
  readonly config: TaskStoreConfig;
  /** The size of its data: memory on Redis, disk on Postgres. */
  bytes(): Promise<number>;
  /** Starts a new measurement. */
  forget(): Promise<void>;
  /** Milliseconds of each step since then. */
  steps(): Promise<number[]>;
}

const SLOWLOG_LENGTH = 100_000;

async function startTimedRedis(): Promise<TimedServer> {
  const server = await startRedis({ config: [['slowlog-max-len', `${SLOWLOG_LENGTH}`]] });
  const redis = new Redis(server.url);
  return {
    config: { backend: 'redis', url: server.url },
    bytes: async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))![1]),
    async forget() {
      await redis.config('SET', 'slowlog-log-slower-than', '0');
      await redis.slowlog('RESET');
    },
    async steps() {
      type Entry = [id: number, at: number, micros: number, words: string[]];
      const entries = (await redis.slowlog('GET', SLOWLOG_LENGTH)) as Entry[];
      await redis.config('SET', 'slowlog-log-slower-than', '-1');
      await redis.slowlog('RESET');
      return entries.filter(([, , , words]) => /^(eval|fcall)/i.test(words[0]!)).map(([, , micros]) => micros / 1_000);
    },
    async [Symbol.asyncDispose]() {
      redis.disconnect();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** A step is all that one statement takes: it is parsed, bound to its values, and executed. Its commit is not in it. */
async function startTimedPostgres(): Promise<TimedServer> {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-log-'));
  chmodSync(folder, 0o777);
  const settings = { logging_collector: 'on', log_directory: folder, log_filename: 'log', log_min_messages: 'log' };
  const server = await startPostgres({
    durable: true,
    settings: { ...settings, log_file_mode: '0644', log_rotation_size: '0', log_statement: 'none' },
  });
  const setLog = async (ms: number): Promise<void> => {
    await query(server.url, `ALTER SYSTEM SET log_min_duration_statement = ${ms}`);
    await query(server.url, 'SELECT pg_reload_conf()');
  };
  const readLog = (): string => readFileSync(join(folder, 'log'), 'utf8');
  let from = 0;
  let marks = 0;
  const mark = async (): Promise<number> => {
    const name = `mark-${++marks}`;
    await query(server.url, `SELECT '${name}'`);
    for (;;) {
      const at = readLog().indexOf(name);
      if (at >= 0) return at;
      await wait(20);
    }
  };
  return {
    config: { backend: 'postgres', url: server.url },
    bytes: async () =>
      Number((await query(server.url, 'SELECT pg_database_size(current_database())::text AS n'))[0]!['n']),
    async forget() {
      await setLog(0);
      from = await mark();
    },
    async steps() {
      const text = readLog().slice(from, await mark());
      await setLog(-1);
      const steps: number[] = [];
      let sum = 0;
      for (const [, ms, phase] of text.matchAll(/duration: ([\d.]+) ms {2}(parse|bind|execute) [^\n]*_v1"/g)) {
        sum += Number(ms);
        if (phase !== 'execute') continue;
        steps.push(sum);
        sum = 0;
      }
      return steps;
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const STARTS = { redis: startTimedRedis, postgres: startTimedPostgres };

/** The servers that were named on the command line, or all. */
export function timedServers(words: readonly string[]): [name: string, start: () => Promise<TimedServer>][] {
  const all = Object.entries(STARTS);
  const named = all.filter(([name]) => words.includes(name));
  return named.length > 0 ? named : all;
}
