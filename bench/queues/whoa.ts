import { createBullmqEngine } from '@whoa/bullmq';
import { createRunner, createTaskStore, type TaskStore } from '@whoa/tasks';
import { Queue as BullQueue } from 'bullmq';
import { toConnection } from './bullmq.ts';
import type { Creator, Queue } from './queue.ts';

/** Separate agents, so that they do not take each other's tasks. */
const [AGENT, RAW_AGENT] = ['trivial', 'raw'];
const LEASE_MS = 15_000;

/** The runner, as users run it. */
export const whoa: Queue = {
  openCreator: (url) => openCreator(url, AGENT),
  async startWorker(url, { concurrency, work, onEnd, onClaims }) {
    const store = counted(createTaskStore(url), onClaims);
    const runner = createRunner({
      store,
      agents: {
        [AGENT]: async () => {
          await work();
          return 'done';
        },
      },
      hooks: { 'task-end': onEnd },
    });
    await runner.serve({ concurrency });
    return {
      async [Symbol.asyncDispose]() {
        await runner[Symbol.asyncDispose]();
        await store[Symbol.asyncDispose]();
      },
    };
  },
};

type Order = 'tenants' | 'jobs';

/** BullMQ delivers: tenants take turns, or each task is a job. */
export const behindBullmq = createBehindBullmq('tenants');
export const behindBullmqJobs = createBehindBullmq('jobs');

function createBehindBullmq(order: Order): Queue {
  const agent = `queued-${order}`;
  return {
    async openCreator(url) {
      const { engine, store, queue, close } = openEngine(url, { agent, order });
      await queue.waitUntilReady();
      await engine.start();
      return {
        async create() {
          const { result } = await store.create({ tenant: 'bench', agent, input: 'x' });
          if (result !== 'created') throw new Error(`create: ${result}`);
        },
        [Symbol.asyncDispose]: close,
      };
    },
    async startWorker(url, { concurrency, work, onEnd, onClaims }) {
      const { engine, store, close } = openEngine(url, { agent, order });
      const runner = createRunner({
        store: counted(store, onClaims),
        agents: {
          [agent]: async () => {
            await work();
            return 'done';
          },
        },
        hooks: { 'task-end': onEnd },
      });
      await engine.serve(runner, { concurrency });
      return { [Symbol.asyncDispose]: close };
    },
  };
}

/** `urls`: of the store and of BullMQ's Redis. */
function openEngine(urls: string, { agent, order }: { readonly agent: string; readonly order: Order }) {
  const [storeUrl = '', queueUrl = ''] = urls.split(' ');
  const store = createTaskStore(storeUrl);
  const queue = new BullQueue(agent, { connection: toConnection(queueUrl) });
  const engine = createBullmqEngine({ store, queue, agents: [agent], order });
  const close = async (): Promise<void> => {
    await engine[Symbol.asyncDispose]();
    await queue.close();
    await store[Symbol.asyncDispose]();
  };
  return { engine, store, queue, close };
}

/** The same store operations in a bare loop: the difference is the runner. */
export const rawLoop: Queue = {
  openCreator: (url) => openCreator(url, RAW_AGENT),
  async startWorker(url, options) {
    const store = createTaskStore(url);
    const worker = 'raw-loop';
    const session = crypto.randomUUID();
    let [isStopped, isWanted, ring] = [false, true, (): void => {}];
    const wake = (): void => {
      isWanted = true;
      ring();
    };
    const watching = await store.watch({ worker }, wake);
    let [number, live] = [1, 0];
    const finish = async (claim: Parameters<TaskStore['finish']>[0]): Promise<void> => {
      await options.work();
      await store.finish(claim, { status: 'success', answer: 'done' });
      live--;
      options.onEnd();
      ring();
    };
    const loop = async (): Promise<void> => {
      while (!isStopped) {
        const free = options.concurrency - live;
        if (!isWanted || free === 0) {
          await new Promise<void>((resolve) => (ring = resolve));
          continue;
        }
        isWanted = false;
        const request = {
          session,
          worker,
          leaseMs: LEASE_MS,
          claim: crypto.randomUUID(),
          takeNumber: number,
        };
        const answer = await store.take({ ...request, agents: [RAW_AGENT], limit: free });
        if (answer.result !== 'taken') throw new Error(`take: ${answer.result}`);
        if (answer.tasks.length > 0) number++;
        if (answer.tasks.length === free) isWanted = true;
        live += answer.tasks.length;
        options.onClaims(answer.tasks.length);
        for (const { claim } of answer.tasks) finish(claim).catch(fail);
      }
    };
    loop().catch(fail);
    // A notification can be lost, so poll once a second, as the runner does.
    const poll = setInterval(wake, 1_000);
    return {
      async [Symbol.asyncDispose]() {
        isStopped = true;
        clearInterval(poll);
        ring();
        await watching[Symbol.asyncDispose]();
        await store[Symbol.asyncDispose]();
      },
    };
  },
};

async function openCreator(url: string, agent: string): Promise<Creator> {
  const store = createTaskStore(url);
  // Connects, and creates the schema if needed.
  await store.list({ tenant: 'bench', limit: 1 });
  return {
    async create() {
      const { result } = await store.create({ tenant: 'bench', agent, input: 'x' });
      if (result !== 'created') throw new Error(`create: ${result}`);
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

/** A store that reports how many tasks it returned or claimed by id. */
function counted(store: TaskStore, onClaims: (count: number) => void): TaskStore {
  const [take, claim] = [store.take.bind(store), store.claim.bind(store)];
  return Object.assign(store, {
    take: async (request: Parameters<typeof take>[0]) => {
      const answer = await take(request);
      if (answer.result === 'taken') onClaims(answer.tasks.length);
      return answer;
    },
    claim: (...request: Parameters<typeof claim>) => {
      onClaims(1);
      return claim(...request);
    },
  });
}

function fail(error: unknown): void {
  console.error(error);
  process.exit(1);
}
