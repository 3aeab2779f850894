import type { CancelReasonInit } from '@whoa/core';
import type { CancelOptions } from '@whoa/core/embed';
import { settings } from '@whoa/core/internal';
import type { TaskStatus } from '../ledger/rules/status.ts';
import type { ClientStore, StoreCancelReceipt } from '../store.ts';
import type { TaskSummary } from '../task.ts';
import { mapInBatches } from './map-in-batches.ts';

/** Waiting tasks first, so that none of them starts because another was stopped. */
const LIVE = ['init', 'running', 'cancelling'] as const;

/** Which live tasks to cancel. Every field that is set must match. */
export interface CancelTasksRequest extends CancelOptions {
  readonly tenant: string;
  readonly status?: (typeof LIVE)[number] | undefined;
  readonly agent?: string | undefined;
  readonly conversation?: string | undefined;
  readonly reason?: CancelReasonInit | undefined;
  /** Only reports which tasks would be cancelled. */
  readonly dryRun?: boolean | undefined;
  /** How many tasks one call looks at. Defaults to 100. */
  readonly limit?: number | undefined;
  /** `next` of the previous call. */
  readonly cursor?: string | undefined;
}

const { anything } = settings;
// The store checks the values.
const REQUEST_RULES: settings.Rules<CancelTasksRequest> = {
  tenant: anything,
  status: anything,
  agent: anything,
  conversation: anything,
  reason: anything,
  mode: anything,
  undo: anything,
  dryRun: settings.flag,
  limit: anything,
  cursor: anything,
};

/** What happened to one task of many. */
interface CancelledTask {
  readonly id: string;
  /** Its status before. */
  readonly status: TaskStatus;
  readonly result: StoreCancelReceipt['result'] | 'would-cancel';
}

/** One batch of tasks. If there is a `next`, call again with it as `cursor`. */
export interface CancelledTasks {
  readonly tasks: readonly CancelledTask[];
  readonly next?: string;
}

/**
 * Cancels a batch of a tenant's live tasks.
 *
 * @returns What happened to each, and where to continue.
 * @throws SettingsError when a field is unknown or not valid.
 */
export async function cancelTasks(store: ClientStore, request: CancelTasksRequest): Promise<CancelledTasks> {
  const { tenant, agent, reason, dryRun = false, mode, undo } = request;
  settings.readSettings<CancelTasksRequest>(request, REQUEST_RULES);
  const page = await nextPage(store, request);
  const found = page.tasks.filter((task) => agent === undefined || task.agent === agent);
  const options = { ...(mode !== undefined && { mode }), ...(undo !== undefined && { undo }) };
  const tasks = await mapInBatches(found, async ({ id, status }): Promise<CancelledTask> => {
    const result = dryRun ? 'would-cancel' : (await store.cancel({ tenant, id }, reason, options)).result;
    return { id, status, result };
  });
  return page.next === undefined ? { tasks } : { tasks, next: page.next };
}

/** Reads one page of one status. Its cursor contains the status to continue with. */
async function nextPage(
  store: ClientStore,
  { tenant, status, conversation, limit = 100, cursor }: CancelTasksRequest,
): Promise<{ readonly tasks: readonly TaskSummary[]; readonly next?: string | undefined }> {
  const [, from, rest] = /^(\w+):(.*)$/s.exec(cursor ?? '') ?? [];
  const now = LIVE.find((one) => one === from) ?? status ?? LIVE[0];
  const { tasks, next } = await store.list({
    tenant,
    status: now,
    limit,
    ...(conversation !== undefined && { conversation }),
    ...(rest && { cursor: rest }),
  });
  if (next !== undefined) return { tasks, next: `${now}:${next}` };
  const following = status === undefined ? LIVE[LIVE.indexOf(now) + 1] : undefined;
  return { tasks, next: following && `${following}:` };
}
