// BullMQ in front of a store whose servers, connections and clocks fail, on a Redis that loses its jobs.
import { setTimeout as wait } from 'node:timers/promises';
import { createBullmqEngine } from '@whoa/bullmq';
import type { TaskStore } from '@whoa/tasks';
import { Queue } from 'bullmq';
import { type Address, startProxy } from '../servers/proxy.ts';
import { ask, startRedis } from '../servers/redis.ts';
import { type ChaosStoreKind, cutAll, freeze } from './chaos-stores.ts';

const NAME = 'chaos';
const RETRY_DELAY_MS = 50;
const DRAIN_MS = 2_000;
/** What was offered again and then drained by hand waits for so long. */
const OFFER_GAP_MS = 606_000;

/** Puts a queue in front of a kind of store. */
export function behindBullmq(behind: ChaosStoreKind): ChaosStoreKind {
  return {
    name: 'BullMQ',
    async open(clock) {
      const store = await behind.open(clock);
      // It persists nothing: a restart loses every ticket.
      const server = await startRedis({ env: clock.env, appendfsync: 'none' });
      const front = await startProxy({ host: '127.0.0.1', port: server.port });
      const { faults, network, cannot } = store;
      return {
        get location() {
          return store.location;
        },
        faults: {
          ...faults,
          'restart the queue': async () => {
            await server.kill('SIGKILL');
            await server.start();
          },
          'freeze the queue': () => freeze(server),
          'cut the connections of the queue': () => cutAll(server),
          'empty the queue': async () => void (await ask(server.port, 'FLUSHALL')),
          'drain the queue in a dashboard': () => drain(front.address),
        },
        healAheadMs: OFFER_GAP_MS,
        ...(network && { network }),
        cannot,
        front: front.address,
        async [Symbol.asyncDispose]() {
          await front[Symbol.asyncDispose]();
          await server[Symbol.asyncDispose]();
          await store[Symbol.asyncDispose]();
        },
      };
    },
  };
}

/** Only the jobs go: the engine is not told, as it is when Redis loses everything. */
async function drain(front: Address): Promise<void> {
  const queue = new Queue(NAME, { connection: toConnection(front) });
  queue.on('error', () => {});
  await Promise.race([queue.drain(true), wait(DRAIN_MS)]);
  await Promise.race([queue.close(), wait(DRAIN_MS)]);
}

/** Creates tasks with tickets. Dispose it before the stores. */
export interface TicketOffice extends AsyncDisposable {
  placeBefore(store: TaskStore): TaskStore;
}

export function openTicketOffice(front: Address, agents: readonly string[] = ['job']): TicketOffice {
  const queue = new Queue(NAME, { connection: toConnection(front) });
  const engines = new AsyncDisposableStack();
  queue.on('error', () => {});
  return {
    placeBefore(store) {
      const engine = engines.use(createBullmqEngine({ store, queue, agents }));
      // While the store or the queue is away, the workers offer what this process creates.
      engine.start().catch(() => {});
      return store;
    },
    async [Symbol.asyncDispose]() {
      await Promise.race([engines.disposeAsync().then(() => queue.close()), wait(RETRY_DELAY_MS * 20)]);
    },
  };
}

/** The options of `bullmq()` for a worker. */
export function toEngineOptions(front: string): {
  queue: string;
  connection: object;
  worker: object;
} {
  const worker = { lockDuration: 1_000, stalledInterval: 300, drainDelay: 1 };
  return { queue: NAME, connection: toConnection(JSON.parse(front) as Address), worker };
}

function toConnection({ host, port }: Address): { host: string; port: number; retryStrategy: () => number } {
  return { host, port, retryStrategy: () => RETRY_DELAY_MS };
}
