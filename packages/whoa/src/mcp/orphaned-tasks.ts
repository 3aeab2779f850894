// Tasks of `whoa mcp` end with their process. If it was killed, the next one ends what it left.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { CancelReasonInit } from '@whoa/core';
import type { TaskStore, TaskSummary } from '@whoa/tasks';
import { LOCAL_TENANT } from '../tasks/local-tasks.ts';

/** How many running tasks are looked at. */
const MAX_LOOKED_AT = 1_000;
const KILLED: CancelReasonInit = { kind: 'disconnect', via: 'mcp', message: 'the process that ran it was killed' };

/** The name of this process as a worker: another one on this machine can tell whether it is still alive. */
export function createWorkerName(): string {
  return [PREFIX, process.pid, randomUUID()].join('/');
}

const PREFIX = `mcp/${hostname()}`;

/** Cancels the running tasks of commands that were killed on this machine. */
export async function cancelOrphanedTasks(store: TaskStore): Promise<void> {
  let cursor: string | undefined;
  for (let seen = 0; seen < MAX_LOOKED_AT; ) {
    const page = await store.list({ tenant: LOCAL_TENANT, status: 'running', ...(cursor !== undefined && { cursor }) });
    for (const task of page.tasks)
      if (isLeft(task)) await store.cancel({ tenant: LOCAL_TENANT, id: task.id }, KILLED, { mode: 'now' });
    seen += page.tasks.length;
    cursor = page.next;
    if (cursor === undefined) return;
  }
}

function isLeft({ worker = '' }: TaskSummary): boolean {
  if (!worker.startsWith(`${PREFIX}/`)) return false;
  const pid = Number(worker.slice(PREFIX.length + 1).split('/', 1)[0]);
  return Number.isInteger(pid) && pid > 0 && pid !== process.pid && !isAlive(pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
