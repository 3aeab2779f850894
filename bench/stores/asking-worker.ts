import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { TaskRecord, TaskRef, TaskStore } from '@whoa/tasks';
import type { AskingMessage, AskingOptions } from '../children/asking.ts';

const POLL_INTERVAL_MS = 5;
const CREATING = 64;
const TENANT = 'bench';

/** A worker in a separate process, for tasks with questions. */
export class AskingWorker implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #started = new Map<string, PromiseWithResolvers<bigint>>();

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on('message', (message: AskingMessage) => {
      if (message.type === 'started') this.#start(message.id).resolve(BigInt(message.at));
    });
  }

  static async start(options: AskingOptions): Promise<AskingWorker> {
    const child = fork(join(import.meta.dirname, '../children/asking.ts'), [JSON.stringify(options)], {
      execArgv: process.execArgv,
    });
    const worker = new AskingWorker(child);
    await once(child, 'message');
    return worker;
  }

  /** Resolves with the time at which a task or its call starts. */
  waitForStart(id: string): Promise<bigint> {
    return this.#start(id).promise;
  }

  /** Resolves when it holds no tasks. */
  async waitForIdle(): Promise<void> {
    for (let live = -1; live !== 0; await wait(POLL_INTERVAL_MS)) {
      const answer = once(this.#child, 'message') as Promise<[AskingMessage]>;
      this.#child.send('live');
      const [message] = await answer;
      if (message.type === 'live') live = message.live;
    }
  }

  /** Its start may be reported before anyone waits for it. */
  #start(id: string): PromiseWithResolvers<bigint> {
    const started = this.#started.get(id) ?? Promise.withResolvers<bigint>();
    this.#started.set(id, started);
    return started;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

export async function createTask(store: TaskStore, agent: string): Promise<TaskRef> {
  const receipt = await store.create({ tenant: TENANT, agent, input: 'x' });
  if (receipt.result !== 'created') throw new Error(`create: ${receipt.result}`);
  return { tenant: TENANT, id: receipt.task.id };
}

/** Creates `count` tasks with questions, and waits until all of them are parked. */
export async function createParked(
  store: TaskStore,
  worker: AskingWorker,
  { agent, count }: { readonly agent: string; readonly count: number },
): Promise<void> {
  let left = count;
  const create = async (): Promise<void> => {
    while (left-- > 0) await createTask(store, agent);
  };
  await Promise.all(Array.from({ length: CREATING }, create));
  for (let parked = 0; parked < count; await wait(100))
    parked = (await store.counts({ tenant: TENANT })).statuses.running;
  await worker.waitForIdle();
}

/** Resolves when a task waits for an answer, in this stage. Returns the question. */
export async function waitForQuestion(store: TaskStore, ref: TaskRef, stage: TaskRecord['stage']): Promise<string> {
  for (;;) {
    const task = await store.get(ref);
    const question = task?.questions?.[0]?.id;
    if (question !== undefined && task?.stage === stage) return question;
    await wait(POLL_INTERVAL_MS);
  }
}
