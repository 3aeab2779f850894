import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { TaskStore, TaskStoreConfig } from '@whoa/tasks';
import type { WaitingReport } from '../children/waiting.ts';

const POLL_INTERVAL_MS = 20;
const CREATING = 64;

/** A worker in a separate process, for tasks that only wait. */
export class WaitingWorker implements AsyncDisposable {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(config: TaskStoreConfig, concurrency: number): Promise<WaitingWorker> {
    const script = join(import.meta.dirname, '../children/waiting.ts');
    const child = fork(script, [JSON.stringify(config), `${concurrency}`]);
    await once(child, 'message');
    return new WaitingWorker(child);
  }

  async report(): Promise<WaitingReport> {
    const answer = once(this.#child, 'message') as Promise<[WaitingReport]>;
    this.#child.send('report');
    return (await answer)[0];
  }

  /** Resolves when it holds `count` tasks. */
  async has(count: number): Promise<void> {
    while ((await this.report()).live !== count) await wait(POLL_INTERVAL_MS);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

/** Creates `count` tasks that only wait; returns their ids. */
export async function createWaiting(store: TaskStore, count: number): Promise<readonly string[]> {
  const ids: string[] = [];
  let left = count;
  const create = async (): Promise<void> => {
    while (left-- > 0) {
      const receipt = await store.create({ tenant: 'bench', agent: 'waits', input: 'x' });
      if (receipt.result !== 'created') throw new Error(`create: ${receipt.result}`);
      ids.push(receipt.task.id);
    }
  };
  await Promise.all(Array.from({ length: CREATING }, create));
  return ids;
}
