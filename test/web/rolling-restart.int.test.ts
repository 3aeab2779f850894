// A deploy: every server and every worker is replaced, one at a time, while tasks run and people read along.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTaskClient } from '@whoa/server/task-client';
import { expect, test } from 'vitest';
import { isNight } from '../night.ts';
import { readLines } from '../promises/fixture.ts';
import { borrowPostgres } from '../servers/borrow.ts';
import { type Child, startProgram } from '../tasks/child.ts';

const TASKS = isNight ? 500 : 100;
const STEPS = 8;
const STEP_MS = 500;
/** How long a busy machine may take for one request to the store. */
const BUSY_MS = 60_000;

const program = (name: string, ...args: string[]): Child =>
  startProgram(join(import.meta.dirname, `programs/${name}.ts`), args);

/** Starts another before it ends the old one, as deploys do. */
async function replace(old: Child, next: () => Promise<Child>): Promise<Child> {
  const taken = await next();
  old.process.kill('SIGTERM');
  await old.ended;
  return taken;
}

test(`${TASKS} tasks live through a deploy: none is lost, none runs twice at the same time, every reader reads on`, async () => {
  await using postgres = await borrowPostgres();
  const location = JSON.stringify({
    backend: 'postgres',
    url: postgres.url,
    connectTimeoutMs: BUSY_MS,
    statementTimeoutMs: BUSY_MS,
  });
  const folder = mkdtempSync(join(tmpdir(), 'whoa-deploy-'));
  const file = join(folder, 'work.jsonl');
  const startWorker = async (): Promise<Child> => {
    const child = program('step-worker', location, file, `${STEPS}`, `${STEP_MS}`);
    await child.hear<{ type: string }>(({ type }) => type === 'serving');
    return child;
  };
  const startServer = async (port = 0): Promise<{ child: Child; port: number }> => {
    const child = program('task-server', location, `${port}`);
    return { child, port: (await child.hear<{ type: string; port: number }>(({ type }) => type === 'listening')).port };
  };
  const servers = await Promise.all([startServer(), startServer()]);
  const workers = await Promise.all([startWorker(), startWorker(), startWorker()]);
  const clients = servers.map(({ port }) => createTaskClient({ url: `http://127.0.0.1:${port}`, token: 'none' }));
  const created = await Promise.all(
    Array.from({ length: TASKS }, (_, i) => clients[i % 2]!.create({ agent: 'steps', input: i })),
  );
  const ids = created.map((receipt) => (receipt as { task: { id: string } }).task.id);
  const readings = ids.map(async (id, i) => {
    const seen: number[] = [];
    let end = '';
    for await (const one of clients[i % 2]!.follow(id)) {
      if (one.type === 'entry') seen.push((one.event as unknown as { step: number }).step);
      else if (one.type === 'end') end = one.task.status;
    }
    return { seen, end };
  });
  for (const [i, worker] of workers.entries()) workers[i] = await replace(worker, startWorker);
  for (const [i, { child, port }] of servers.entries()) {
    child.process.kill('SIGTERM');
    await child.ended;
    servers[i] = await startServer(port);
  }
  const steps = Array.from({ length: STEPS }, (_, i) => i + 1);
  for (const { seen, end } of await Promise.all(readings)) {
    expect(end).toBe('success');
    expect(seen).toEqual(steps);
  }
  expect(overlaps(file)).toEqual([]);
  for (const child of [...workers, ...servers.map((server) => server.child)]) child.process.kill('SIGTERM');
  await Promise.all([...workers, ...servers.map((server) => server.child)].map(({ ended }) => ended));
  rmSync(folder, { recursive: true });
});

/** Tasks that began somewhere before they had ended elsewhere. */
function overlaps(file: string): string[] {
  const notes = readLines(file).map((line) => JSON.parse(line) as { id: string; phase: string; at: number });
  const running = new Map<string, number>();
  const found = new Set<string>();
  for (const { id, phase } of notes.toSorted((a, b) => a.at - b.at)) {
    const now = (running.get(id) ?? 0) + (phase === 'begin' ? 1 : -1);
    running.set(id, now);
    if (now > 1) found.add(id);
  }
  return [...found];
}
