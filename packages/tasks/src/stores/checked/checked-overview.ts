import type { Json } from '@whoa/core';
import {
  type ConversationPage,
  type PageRequest,
  type PauseTarget,
  type Queue,
  type QueuePage,
  type TaskCounts,
  type TenantPage,
  toWorkerPage,
  type WorkerPage,
} from '../../overview.ts';
import { DEFAULTS } from '../../rules/rules.ts';
import type { RemoveReceipt } from '../../store.ts';
import type { ConversationRef, TaskRef } from '../../task.ts';
import type { StoreDriver } from '../driver.ts';
import { checkDuration, checkLimit, checkName, checkRef } from './checks.ts';

/** What operators ask of a store: it checks arguments and cuts pages. */
export abstract class CheckedOverview {
  protected abstract open(): StoreDriver;

  async counts({ tenant }: { readonly tenant: string }): Promise<TaskCounts> {
    checkName('tenant', tenant);
    const limit = DEFAULTS.maxCounted;
    return { tenant, statuses: await this.open().counts({ tenant, limit }), limit };
  }

  async tenants({ limit = DEFAULTS.listLimit, cursor = '' }: PageRequest = {}): Promise<TenantPage> {
    const page = pageOf(limit, DEFAULTS.maxNames);
    if (cursor !== '') checkName('cursor', cursor);
    const found = await this.open().tenants({ after: cursor, limit: page + 1 });
    const tenants = found.slice(0, page);
    return found.length > page ? { tenants, next: tenants.at(-1)! } : { tenants };
  }

  async workers({ limit = DEFAULTS.maxPage }: { readonly limit?: number } = {}): Promise<WorkerPage> {
    const page = pageOf(limit);
    return toWorkerPage(await this.open().workers({ limit: page + 1 }), page);
  }

  async queues({ limit = DEFAULTS.listLimit, cursor }: PageRequest = {}): Promise<QueuePage> {
    const page = pageOf(limit);
    const after = cursor === undefined ? undefined : laneOfCursor(cursor);
    const found = await this.open().queues({ limit: page + 1, ...(after !== undefined && { after }) });
    const queues = found.queues.slice(0, page);
    const { agent, tenant } = queues.at(-1) ?? {};
    return { ...found, queues, ...(found.queues.length > page && { next: JSON.stringify([agent, tenant]) }) };
  }

  async findOnce<T extends Json>(maxAgeMs: number, find: () => Promise<T | undefined>): Promise<T | undefined> {
    checkDuration('maxAgeMs', maxAgeMs);
    const { isDue, found } = await this.open().share({ maxAgeMs });
    if (!isDue) return found === null ? undefined : (JSON.parse(found) as T);
    const fresh = await find();
    if (fresh !== undefined) await this.open().share({ maxAgeMs, found: JSON.stringify(fresh) });
    return fresh;
  }

  async conversations(request: PageRequest & { readonly tenant: string }): Promise<ConversationPage> {
    const { tenant, limit = DEFAULTS.listLimit, cursor = '' } = request;
    checkName('tenant', tenant);
    const page = pageOf(limit, DEFAULTS.maxNames);
    if (cursor !== '') checkName('cursor', cursor);
    const found = await this.open().conversations({ tenant, after: cursor, limit: page + 1 });
    const conversations = found.slice(0, page);
    return { conversations, ...(found.length > page && { next: conversations.at(-1)! }) };
  }

  async pause(target: PauseTarget, isPaused: boolean): Promise<void> {
    const checked = 'agent' in target ? { agent: target.agent } : { tenant: target.tenant };
    for (const [name, value] of Object.entries(checked)) checkName(name, value);
    if (typeof isPaused !== 'boolean') throw new TypeError('isPaused: expected true or false');
    await this.open().pause(checked, isPaused);
  }

  async remove(target: TaskRef | ConversationRef): Promise<RemoveReceipt> {
    checkRef(target);
    return this.open().remove(target);
  }
}

function pageOf(limit: number, most: number = DEFAULTS.maxPage): number {
  return Math.min(checkLimit('limit', limit), most);
}

function laneOfCursor(cursor: string): Pick<Queue, 'agent' | 'tenant'> {
  try {
    const [agent, tenant] = JSON.parse(cursor) as unknown[];
    if (typeof agent === 'string' && typeof tenant === 'string') return { agent, tenant };
  } catch {
    // Not ours.
  }
  throw new TypeError(`cursor: '${cursor}' is not the next of a page`);
}
