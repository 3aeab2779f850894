import { createReason } from '@whoa/core/embed';
import {
  createRunner,
  eraseRecords,
  haltTasks,
  listPoisonTasks,
  readFleetLoad,
  requeueTask,
  type TaskRecord,
  type TaskStore,
  type TaskSummary,
} from '@whoa/tasks';
import type { WhoaConfig } from '../../config/config.ts';
import { userName } from '../../terminal/interrupts.ts';
import { describeStore, isLost, LOCAL_TENANT, openStore, reclaimLost } from '../local-tasks.ts';
import { createAllTenantsSource } from './all-tenants.ts';
import { followTask } from './follow-task.ts';
import { MAX_QUESTIONS, type SourceOptions, type TaskSource } from './task-source.ts';

/** How many tasks of lost workers one round of a halt settles. */
const MAX_SETTLED = 100;

/** The tasks of one tenant, or of all, in the store of a configuration. */
export function createStoreSource(config: WhoaConfig, { tenant = LOCAL_TENANT, all, env }: SourceOptions): TaskSource {
  const store = openStore(config, env);
  const ladder = config.stopMode ?? 'graceful';
  const { location } = describeStore(config, env);
  const open = (one: string): TaskSource => createTenantSource(store, { tenant: one, stopMode: ladder, location });
  return all ? createAllTenantsSource({ list: (page) => store.tenants(page), open }, open(tenant)) : open(tenant);
}

/** The tasks of one tenant in a store. */
export function createTenantSource(
  store: TaskStore,
  {
    tenant,
    stopMode,
    location = 'this store',
  }: { readonly tenant: string } & Pick<TaskSource, 'stopMode'> & Partial<Pick<TaskSource, 'location'>>,
): TaskSource {
  const reasonFor = (message: string | undefined, via = 'whoa cancel') =>
    createReason({ kind: 'user', by: userName(), via, ...(message && { message }) }, Date.now());
  const settle = async ({ id, tenant: owner, agent }: TaskRecord): Promise<void> => {
    const runner = createRunner({ store, agents: { [agent]: () => Promise.resolve(undefined) } });
    try {
      await runner.runExisting({ tenant: owner, id });
    } finally {
      await runner[Symbol.asyncDispose]();
    }
  };
  return {
    location,
    stopMode,
    get: (id) => store.get({ tenant, id }),
    list: ({ poison = false, ...filter }) =>
      poison ? listPoisonTasks(store, { ...filter, tenant }) : store.list({ ...filter, tenant }),
    cancel: (id, { reason, mode, undo }) => store.cancel({ tenant, id }, reasonFor(reason), { mode, undo }),
    cancelCall: (id, callId, reason) =>
      store.send({ tenant, id }, { type: 'cancel-call', callId, reason: reasonFor(reason) }),
    questions: () => store.questions({ tenant, limit: MAX_QUESTIONS }),
    answer: (id, value) => store.answer({ tenant, id }, { value: { ...value }, by: userName() }),
    steer: (id, message) => store.send({ tenant, id }, { type: 'steer', message }),
    follow: (id, options) => followTask(store, { tenant, id }, options),
    counts: async () => [await store.counts({ tenant })],
    workers: () => store.workers(),
    fleet: () => readFleetLoad(store),
    pause: (target, isPaused) => store.pause(target, isPaused),
    halt: (target, { reason, ...options }) => {
      const onRound = async (live: readonly TaskSummary[]): Promise<void> => {
        // No worker may be left to write the ends of tasks whose workers died.
        await reclaimLost(store);
        for (const { id, tenant: owner } of live.filter((task) => isLost(task)).slice(0, MAX_SETTLED)) {
          const record = await store.get({ tenant: owner, id });
          if (record?.stop !== undefined && isLost(record)) await settle(record);
        }
      };
      return haltTasks(store, target, { ...options, reason: reasonFor(reason, 'whoa halt'), onRound });
    },
    requeue: (id) => requeueTask(store, { tenant, id }),
    erase: (target) => eraseRecords(store, target, { by: userName() }),
    reclaimLost: () => reclaimLost(store),
    settleOrphaned: settle,
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
