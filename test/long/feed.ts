// The feed under kills: npm run long -- feed [EVENTS] [KILLS] [URL]. Writers ask, answer and end tasks; readers are killed
// between the work and the move. Nothing may be lost, or out of a task's order; what comes twice has the id that it had.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { TaskStore } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import { borrowPostgres } from '../servers/borrow.ts';

const WRITERS = 16;
const READERS = 3;
const QUESTIONS = 4;
const PER_TASK = 2 * QUESTIONS + 1;
const READER = join(import.meta.dirname, '../tasks/children/feed-reader.ts');

/** What was found. */
export interface FeedCampaign {
  readonly events: number;
  readonly kills: number;
  readonly lost: number;
  readonly outOfOrder: number;
  readonly doubles: number;
  /** Doubles with another id than before. */
  readonly changed: number;
  /** The total that readers added up in the step that moved their cursor, less the events: 0. */
  readonly miscounted: number;
}

export async function runFeedCampaign(url: string, events: number, kills: number): Promise<FeedCampaign> {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-feed-'));
  const file = join(folder, 'log');
  writeFileSync(file, '');
  const schema = `feed_${process.pid}`;
  await using store = createPostgresStore({ url, schema, maxConnections: WRITERS });
  await store.feed.register({
    consumer: 'campaign',
    kinds: ['task.ended', 'question.asked', 'question.answered', 'question.closed'],
  });
  let killed = 0;
  let next = 0;
  const readers = new Set<ChildProcess>();
  // Each is killed while it works: between the work and the move, or soon after.
  const start = (): void => {
    const args = ['--conditions=@whoa/source', '--no-warnings', READER, url, schema, file];
    const reader = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    readers.add(reader);
    reader.on('message', () => {
      if (killed >= kills || performance.now() < next) return;
      next = performance.now() + 300;
      killed++;
      setTimeout(() => reader.kill('SIGKILL'), Math.random() * 6);
    });
    reader.on('exit', () => {
      readers.delete(reader);
      if (!isOver) start();
    });
  };
  let isOver = false;
  for (let i = 0; i < READERS; i++) start();
  const purging = setInterval(() => void store.feed.purge().catch(() => {}), 500);
  const ids: string[] = [];
  const tasks = Math.ceil(events / PER_TASK);
  await Promise.all(
    Array.from({ length: WRITERS }, async (_, writer) => {
      for (let i = writer; i < tasks; i += WRITERS) ids.push(await liveOnce(store, `tenant-${i % 40}`));
    }),
  );
  const expected = tasks * PER_TASK;
  const read = async (): Promise<number> => (await store.feed.totals())['events'] ?? 0;
  // Until all is read, or nothing arrives for a minute.
  for (let before = -1, quiet = 0; quiet < 60; ) {
    await wait(1_000);
    const now = await read();
    if (now >= expected) break;
    quiet = now === before ? quiet + 1 : 0;
    before = now;
  }
  clearInterval(purging);
  isOver = true;
  for (const reader of readers) reader.kill('SIGKILL');
  const total = await read();
  const found = { ...judge(ids, readFileSync(file, 'utf8')), kills: killed, miscounted: total - expected };
  rmSync(folder, { recursive: true });
  return found;
}

/** A task that asks and is answered several times, then ends. */
async function liveOnce(store: TaskStore, tenant: string): Promise<string> {
  const receipt = await store.create({ tenant, agent: 'asker', input: 'x' });
  if (receipt.result !== 'created') throw new Error(receipt.result);
  const { id } = receipt.task;
  const session = crypto.randomUUID();
  const claimed = await store.claim(id, { session, worker: session, leaseMs: 600_000, claim: crypto.randomUUID() });
  if (claimed.result !== 'claimed') throw new Error(claimed.result);
  for (let i = 0; i < QUESTIONS; i++) {
    const question = `${id}.${i}`;
    const closes = i === 0 ? [] : [{ id: `${id}.${i - 1}`, why: 'answered' as const }];
    const asks = [{ id: question, callId: `c${i}`, kind: 'approve' as const, shown: 'x' }];
    await store.append(claimed.claim, { after: i, events: ['asked'], asks, closes });
    await store.answer({ tenant, id: question }, { value: true });
  }
  await store.finish(claimed.claim, { status: 'success' });
  return id;
}

function judge(ids: readonly string[], log: string): Omit<FeedCampaign, 'kills' | 'miscounted'> {
  const expected = Array.from({ length: QUESTIONS }, (_, i) => [
    `question.asked.${i}`,
    `question.answered.${i}`,
  ]).flat();
  const order = [...expected, 'task.ended'];
  const seen = new Map<string, Map<string, string>>();
  const counts = { outOfOrder: 0, doubles: 0, changed: 0 };
  for (const line of log.trim().split('\n')) {
    const [, task = '', what = '', id = ''] = line.split(' ');
    const known = seen.get(task) ?? new Map<string, string>();
    seen.set(task, known);
    const before = known.get(what);
    if (before !== undefined) {
      counts.doubles++;
      if (before !== id) counts.changed++;
    } else if (order[known.size] !== what) counts.outOfOrder++;
    known.set(what, id);
  }
  const lost = ids.reduce((sum, id) => sum + PER_TASK - (seen.get(id)?.size ?? 0), 0);
  return { events: ids.length * PER_TASK, lost, ...counts };
}

if (process.argv[1] === import.meta.filename) {
  const [events = '100000', kills = '100', url] = process.argv.slice(2);
  await using server = url === undefined ? await borrowPostgres() : undefined;
  console.log(JSON.stringify(await runFeedCampaign(url ?? server!.url, Number(events), Number(kills))));
}
