import { createReason } from '@whoa/core';
import { createRunner } from '@whoa/tasks';
import type { WhoaConfig } from '../config/config.ts';
import { userName } from '../terminal/interrupts.ts';
import { followTask } from './follow-task.ts';
import { freeLost, LOCAL_TENANT, openStore } from './local-tasks.ts';
import type { TaskSource } from './task-source.ts';

/** The tasks of one tenant in the store of a configuration. */
export function createStoreSource(config: WhoaConfig, tenant: string = LOCAL_TENANT): TaskSource {
  const store = openStore(config);
  const reasonFor = (message: string | undefined) =>
    createReason({ kind: 'user', by: userName(), via: 'whoa cancel', ...(message && { message }) }, Date.now());
  return {
    ladder: config.ladder ?? 'graceful',
    get: (id) => store.get({ tenant, id }),
    list: (filter) => store.list({ ...filter, tenant }),
    cancel: (id, { reason, how, undo }) => store.cancel({ tenant, id }, reasonFor(reason), { how, undo }),
    cancelCall: (id, callId, reason) =>
      store.send({ tenant, id }, { type: 'cancel-call', callId, reason: reasonFor(reason) }),
    follow: (id, options) => followTask(store, { tenant, id }, options),
    freeLost: () => freeLost(store),
    async settleLost({ id, agent }) {
      const runner = createRunner({ store, agents: { [agent]: () => Promise.resolve(undefined) } });
      try {
        await runner.work({ tenant, id });
      } finally {
        await runner[Symbol.asyncDispose]();
      }
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
