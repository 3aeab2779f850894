import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { TaskStoreConfig } from '@whoa/tasks';
import { startPostgres } from '../../test/servers/postgres.ts';
import { query } from '../../test/servers/query.ts';

/** A server that reports how long each of its statements took. */
export interface TimedServer extends AsyncDisposable {
  readonly config: TaskStoreConfig;
  /** The size of its data on disk. */
  bytes(): Promise<number>;
  /** Starts a new measurement. */
  forget(): Promise<void>;
  /** Milliseconds of each step since then. */
  steps(): Promise<number[]>;
}

/** A step is all that one statement takes: it is parsed, bound to its values, and executed. Its commit is not in it. */
export async function startTimedPostgres(): Promise<TimedServer> {
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
      for (const [, ms, phase] of text.matchAll(/duration: ([\d.]+) ms {2}(parse|bind|execute) [^\n]*_v3"/g)) {
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
