import { createReason } from '@whoa/core/embed';
import { createRunner, eraseRecords, listPoisonTasks, readFleetLoad, requeueTask, type TaskStore } from '@whoa/tasks';
import type { WhoaConfig } from '../../config/config.ts';
import { userName } from '../../terminal/interrupts.ts';
import { describeStore, LOCAL_TENANT, openStore, reclaimLost } from '../local-tasks.ts';
import { createAllTenantsSource } from './all-tenants.ts';
import { followTask } from './follow-task.ts';
import { MAX_QUESTIONS, type SourceOptions, type TaskSource } from './task-source.ts';

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
  const reasonFor = (message: string | undefined) =>
    createReason({ kind: 'user', by: userName(), via: 'whoa cancel', ...(message && { message }) }, Date.now());
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
    requeue: (id) => requeueTask(store, { tenant, id }),
    erase: (target) => eraseRecords(store, target, { by: userName() }),
    reclaimLost: () => reclaimLost(store),
    async settleOrphaned({ id, agent }) {
      const runner = createRunner({ store, agents: { [agent]: () => Promise.resolve(undefined) } });
      try {
        await runner.runExisting({ tenant, id });
      } finally {
        await runner[Symbol.asyncDispose]();
      }
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
