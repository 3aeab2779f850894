import { SettingsError } from '@whoa/core';
import { type EngineReceipt, type OperatorStore, type PauseTarget, type Queue, toWorkerPage } from '../../overview.ts';
import type { StoreDriver } from '../driver.ts';
import { DEFAULTS } from '../rules/rules.ts';
import { parseCursor } from './checked-arguments.ts';
import { checkDuration, checkLimit, checkName, checkRef } from './checks.ts';

/** Returns the operator's part of a store: it checks arguments and cuts pages. */
export function createCheckedOperator(open: () => StoreDriver): OperatorStore {
  return {
    async counts({ tenant }) {
      checkName('tenant', tenant);
      const limit = DEFAULTS.maxCounted;
      return { tenant, statuses: await open().counts({ tenant, limit }), limit };
    },
    async tenants({ limit = DEFAULTS.listLimit, cursor = '' } = {}) {
      const page = checkPageSize(limit, DEFAULTS.maxNames);
      if (cursor !== '') checkName('cursor', cursor);
      const found = await open().tenants({ after: cursor, limit: page + 1 });
      const tenants = found.slice(0, page);
      return found.length > page ? { tenants, next: tenants.at(-1)! } : { tenants };
    },
    async workers({ limit = DEFAULTS.maxPage } = {}) {
      const page = checkPageSize(limit);
      return toWorkerPage(await open().workers({ limit: page + 1 }), page);
    },
    async queues({ limit = DEFAULTS.listLimit, cursor } = {}) {
      const page = checkPageSize(limit);
      const after = cursor === undefined ? undefined : parseQueueCursor(cursor);
      const found = await open().queues({ limit: page + 1, ...(after !== undefined && { after }) });
      const queues = found.queues.slice(0, page);
      const { agent, tenant } = queues.at(-1) ?? {};
      return { ...found, queues, ...(found.queues.length > page && { next: JSON.stringify([agent, tenant]) }) };
    },
    async findOnce<T>(maxAgeMs: number, find: () => Promise<T | undefined>) {
      checkDuration('maxAgeMs', maxAgeMs);
      const { isDue, found } = await open().share({ maxAgeMs });
      if (!isDue) return found === null ? undefined : (JSON.parse(found) as T);
      const fresh = await find();
      if (fresh !== undefined) await open().share({ maxAgeMs, found: JSON.stringify(fresh) });
      return fresh;
    },
    figures: async () => open().figures({ limit: DEFAULTS.maxFigures }),
    async conversations({ tenant, limit = DEFAULTS.listLimit, cursor = '' }) {
      checkName('tenant', tenant);
      const page = checkPageSize(limit, DEFAULTS.maxNames);
      if (cursor !== '') checkName('cursor', cursor);
      const found = await open().conversations({ tenant, after: cursor, limit: page + 1 });
      const conversations = found.slice(0, page);
      return { conversations, ...(found.length > page && { next: conversations.at(-1)! }) };
    },
    async questions({ tenant, limit = DEFAULTS.listLimit, cursor }) {
      checkName('tenant', tenant);
      const page = checkPageSize(limit, DEFAULTS.maxQuestions);
      const from = cursor === undefined ? undefined : parseCursor(cursor);
      const after = from && { after: { askedAt: from.createdAt, id: from.id } };
      const found = await open().questions({ tenant, limit: page + 1, ...after });
      const questions = found.slice(0, page);
      const last = questions.at(-1);
      return { questions, ...(found.length > page && { next: `${last!.askedAt}/${last!.id}` }) };
    },
    async pause(target, isPaused) {
      const checked = checkPauseTarget(target);
      if (typeof isPaused !== 'boolean') throw new SettingsError('isPaused', 'expected true or false');
      while (await open().pause(checked, isPaused));
    },
    async setEngine(agent, engine, { lostBefore } = {}) {
      checkName('agent', agent);
      if (engine !== undefined) checkName('engine', engine);
      return setEngine(open(), { agent, engine, lostBefore });
    },
    async remove(target) {
      checkRef(target);
      return open().remove(target);
    },
  };
}

function checkPauseTarget(target: PauseTarget): PauseTarget {
  if ('all' in target) {
    if (target.all !== true) throw new SettingsError('all', 'expected true');
    return { all: true };
  }
  const checked = 'agent' in target ? { agent: target.agent } : { tenant: target.tenant };
  for (const [name, value] of Object.entries(checked)) checkName(name, value);
  return checked;
}

async function setEngine(
  driver: StoreDriver,
  request: Parameters<StoreDriver['setEngine']>[0],
): Promise<EngineReceipt> {
  for (;;) {
    const { hasMore = false, ...receipt } = await driver.setEngine(request);
    if (!hasMore) return receipt;
  }
}

function checkPageSize(limit: number, most: number = DEFAULTS.maxPage): number {
  return Math.min(checkLimit('limit', limit), most);
}

function parseQueueCursor(cursor: string): Pick<Queue, 'agent' | 'tenant'> {
  try {
    const [agent, tenant] = JSON.parse(cursor) as unknown[];
    if (typeof agent === 'string' && typeof tenant === 'string') return { agent, tenant };
  } catch {
    // Not ours.
  }
  throw new SettingsError('cursor', `'${cursor}' is not a cursor of this list; pass the next of a page`);
}
