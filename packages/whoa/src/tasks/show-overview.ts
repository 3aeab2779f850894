import type { FleetLoad, TaskCounts, TaskStatus } from '@whoa/tasks';
import type { WorkerPage } from '@whoa/tasks/internal';
import { EXIT } from '../command.ts';
import type { Screen } from '../terminal/screen.ts';
import { formatDuration } from '../terminal/text/durations.ts';
import { oneLine } from '../terminal/text/plain-text.ts';
import { formatTable } from '../terminal/text/table.ts';
import { shortId } from './local-tasks.ts';
import { describeTarget } from './pauses.ts';
import type { TaskSource } from './source/task-source.ts';

export const STATUSES: readonly TaskStatus[] = ['init', 'running', 'cancelling', 'success', 'failed', 'cancelled'];
const MAX_TENANT_CHARACTERS = 40;
const MAX_LIST_CHARACTERS = 200;

/** Prints how many tasks each tenant has, by status, and what each agent has to do. */
export async function showCounts(source: TaskSource, screen: Screen, width: number): Promise<number> {
  const counts = await source.counts();
  const { agents, paused, unsettled } = await readFleet(source);
  screen.status(undefined);
  for (const one of [...counts, ...agents]) screen.data(one);
  if (screen.asJson) return EXIT.success;
  if (counts.length === 0) screen.note('No tasks.');
  else {
    const headings = ['TENANT', ...STATUSES.map((one) => one.toUpperCase())];
    for (const line of formatTable(headings, counts.map(countsRow), { width })) screen.line(line);
  }
  if (agents.length > 0) {
    screen.line('');
    const headings = ['AGENT', 'READY', 'OLDEST', 'RUNNING', 'WORKERS WAITING', ''];
    for (const line of formatTable(headings, agents.map(agentRow), { width })) screen.line(line);
  }
  for (const target of paused) screen.note(`${describeTarget(target)} is paused`);
  if (unsettled > 0) screen.note(`${unsettled} cancelled tasks wait for any worker to settle them`);
  return EXIT.success;
}

/** What all tenants have to do. A server shows it to operators only: for others, nothing. */
export async function readFleet(source: Pick<TaskSource, 'fleet'>): Promise<FleetLoad> {
  try {
    return await source.fleet();
  } catch (error) {
    if ((error as { status?: number }).status !== 403) throw error;
    return { agents: [], paused: [], unsettled: 0, hasMore: false };
  }
}

function agentRow({ agent, ready, oldestWaitMs, running, waiting, isPaused, isUnserved }: FleetLoad['agents'][number]) {
  const oldest = ready === 0 ? '' : formatDuration(oldestWaitMs);
  const state = isPaused ? 'paused' : isUnserved ? 'no worker serves it' : '';
  return [oneLine(agent, MAX_TENANT_CHARACTERS), `${ready}`, oldest, `${running}`, `${waiting}`, state];
}

function countsRow({ tenant, statuses, limit }: TaskCounts): string[] {
  const counted = (status: TaskStatus): string => `${statuses[status]}${statuses[status] >= limit ? '+' : ''}`;
  return [oneLine(tenant, MAX_TENANT_CHARACTERS), ...STATUSES.map(counted)];
}

/** Prints the workers, including idle ones. */
export async function showWorkers(source: TaskSource, screen: Screen, width: number): Promise<number> {
  const { workers, hasMore, now } = await source.workers();
  screen.status(undefined);
  for (const one of workers) screen.data(one);
  if (screen.asJson) return EXIT.success;
  const headings = ['WORKER', 'HOLDS', 'LEASE', 'WAITS FOR', 'TASKS'];
  if (workers.length === 0) screen.note('No workers.');
  else {
    const rows = workers.map((one) => workerRow(one, now));
    for (const line of formatTable(headings, rows, { width })) screen.line(line);
  }
  if (hasMore) screen.note(screen.style('dim', '… and more workers'));
  return EXIT.success;
}

function workerRow(
  { worker, holds, expiresAt, waitsFor, tasks }: WorkerPage['workers'][number],
  now: number,
): string[] {
  const lease = expiresAt === undefined ? '' : formatDuration(Math.max(0, expiresAt - now));
  const waits = oneLine(waitsFor.join(', '), MAX_LIST_CHARACTERS);
  return [oneLine(worker, MAX_TENANT_CHARACTERS), `${holds}`, lease, waits, tasks.map(shortId).join(' ')];
}
