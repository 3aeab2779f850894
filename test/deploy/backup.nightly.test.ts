// The content of a backup, made as docs/operations/backup.md describes: taken while a worker runs and restored under a
// worker that still runs (Postgres), or after it was stopped (SQLite).
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createTaskStore, followTask, type TaskRecord, type TaskStore, type TaskStoreConfig } from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import { startPostgres } from '../servers/postgres.ts';
import { type Child, startProgram } from '../tasks/child.ts';
import { create, running } from '../tasks/held-task.ts';

const TENANT = 'acme';
const STEPS = 60;
const STEP_MS = 200;
const WORKER = join(import.meta.dirname, '../web/programs/step-worker.ts');

interface Kept {
  readonly config: TaskStoreConfig;
  /** Takes a backup while processes use the store. */
  readonly backUp: () => Promise<void> | void;
  readonly restore: () => Promise<void> | void;
  /** Whether processes may use the store while it is restored. */
  readonly isOnline: boolean;
}

async function startWorker(config: TaskStoreConfig, folder: string): Promise<Child> {
  const worker = startProgram(WORKER, [JSON.stringify(config), join(folder, 'work.jsonl'), `${STEPS}`, `${STEP_MS}`]);
  onTestFinished(() => worker[Symbol.asyncDispose]());
  await worker.hear<{ type: string }>(({ type }) => type === 'serving');
  return worker;
}

async function waitForStep(store: TaskStore, id: string, step: number): Promise<void> {
  for await (const seen of followTask(store, { tenant: TENANT, id })) {
    if (seen.type === 'end') throw new Error(`it ended with ${seen.task.status} before step ${step}`);
    if (seen.type === 'entry' && (seen.event as unknown as { step: number }).step >= step) return;
  }
}

const run = (file: string, ...args: string[]): string => execFileSync(file, args, { encoding: 'utf8' });

const STORES: Readonly<Record<string, (folder: string) => Promise<Kept>>> = {
  async postgres(folder) {
    const server = await startPostgres();
    onTestFinished(() => server[Symbol.asyncDispose]());
    const file = join(folder, 'backup.dump');
    const at = (database: string): string => new URL(`/${database}`, server.url).href;
    const sql = (...statements: string[]): string =>
      run('psql', '--quiet', '--output', '/dev/null', server.url, ...statements.flatMap((one) => ['--command', one]));
    sql('CREATE DATABASE tasks');
    return {
      config: { backend: 'postgres', url: at('tasks') },
      isOnline: true,
      backUp: () => void run('pg_dump', '--format', 'custom', '--file', file, at('tasks')),
      restore() {
        sql('CREATE DATABASE restored');
        run('pg_restore', '--dbname', at('restored'), file);
        sql(
          'ALTER DATABASE tasks ALLOW_CONNECTIONS false',
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'tasks'",
          'ALTER DATABASE tasks RENAME TO tasks_before',
          'ALTER DATABASE restored RENAME TO tasks',
        );
      },
    };
  },
  sqlite(folder) {
    const [file, copy] = [join(folder, 'tasks.db'), join(folder, 'backup.db')];
    return Promise.resolve({
      config: { backend: 'sqlite', file },
      isOnline: false,
      backUp() {
        const database = new DatabaseSync(file);
        database.exec(`VACUUM INTO '${copy}'`);
        database.close();
      },
      restore() {
        for (const name of [file, `${file}-wal`, `${file}-shm`]) rmSync(name, { force: true });
        copyFileSync(copy, file);
      },
    });
  },
};

test.each(Object.keys(STORES))(
  '%s: a backup keeps all writes acknowledged before it; later work runs again',
  async (name) => {
    const folder = mkdtempSync(join(tmpdir(), 'whoa-backup-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const { config, isOnline, backUp, restore } = await STORES[name]!(folder);
    const worker = await startWorker(config, folder);
    const before = createTaskStore(config);
    const held = await running(before, { tenant: TENANT, agent: 'other' });
    await before.finish(held.by, { status: 'success', answer: 'kept' });
    const waiting = await create(before, { tenant: TENANT, agent: 'nobody' });
    const task = await create(before, { tenant: TENANT, agent: 'steps' });
    await waitForStep(before, task.id, 5);
    await backUp();
    const late = await create(before, { tenant: TENANT, agent: 'nobody' });
    await waitForStep(before, task.id, 20);
    await before[Symbol.asyncDispose]();
    if (!isOnline) await worker[Symbol.asyncDispose]();
    await restore();
    if (!isOnline) await startWorker(config, folder);

    await using after = createTaskStore(config);
    const get = (id: string): Promise<TaskRecord | undefined> => after.get({ tenant: TENANT, id });
    expect(await get(held.id)).toMatchObject({ status: 'success', outcome: { answer: 'kept' } });
    expect(await get(waiting.id)).toMatchObject({ status: 'init' });
    expect(await get(late.id)).toBeUndefined();
    const steps: number[] = [];
    let ended = '';
    for await (const seen of followTask(after, { tenant: TENANT, id: task.id })) {
      if (seen.type === 'end') ended = seen.task.status;
      else if (seen.type === 'entry') steps.push((seen.event as unknown as { step: number }).step);
    }
    // A worker that noticed has handed the task back, and it was taken again.
    expect((await get(task.id))?.epoch).toBeGreaterThan(1);
    expect(ended).toBe('success');
    expect(steps).toEqual(Array.from({ length: STEPS }, (_, i) => i + 1));
  },
);
