import { join } from 'node:path';
import type { TaskRef, TaskStore } from '@whoa/tasks';
import { startProgram } from '../tasks/child.ts';
import type { Release } from './next-release.ts';

/** A store as a process of some release sees it. */
export interface Client extends AsyncDisposable {
  readonly store: TaskStore;
  /** Follows a task to its end; resolves with the positions that it saw. */
  follow(task: TaskRef): Promise<readonly number[]>;
}

export async function startClient({ folder }: Release, location: string): Promise<Client> {
  const child = startProgram(join(folder, 'test/upgrade/children/store-client.ts'), [location]);
  await child.hear<{ type?: string }>(({ type }) => type === 'ready');
  let number = 0;
  const call = async (method: string, args: readonly unknown[]): Promise<unknown> => {
    const own = ++number;
    child.process.send({ number: own, method, args });
    type Answer = { number?: number; result?: unknown; error?: { message: string; code?: string } };
    const { result, error } = await child.hear<Answer>((answer) => answer.number === own);
    if (error !== undefined) throw Object.assign(new Error(error.message), { code: error.code });
    return result;
  };
  const methods = {
    get:
      (_: object, method: string) =>
      (...args: readonly unknown[]) =>
        call(method, args),
  };
  return {
    store: new Proxy({}, methods) as TaskStore,
    follow: async (task) => (await call('follow', [task])) as readonly number[],
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
