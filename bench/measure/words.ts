import { type ChildProcess, fork } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { TaskStoreConfig } from '@whoa/tasks';
import type { Figures, Part, Work } from '../children/words.ts';

const TENANT = 'bench';

/** A process of `children/words.ts`. */
export interface WordsProcess extends Disposable {
  send(work: Work): void;
  hear<T>(type: string): Promise<T>;
  figures(): Promise<Figures>;
}

interface WordsOptions {
  /** A repository. */
  readonly folder: string;
  readonly part: Part;
  readonly config: TaskStoreConfig;
  /** Between two words of a task, on average. */
  readonly gapMs?: number;
  /** How many workers it has. */
  readonly workers?: number;
}

export async function startWords({
  folder,
  part,
  config,
  gapMs = 20,
  workers = 1,
}: WordsOptions): Promise<WordsProcess> {
  const args = [folder, part, JSON.stringify(config), `${gapMs}`, `${workers}`];
  const child = fork(join(import.meta.dirname, '../children/words.ts'), args, {
    execArgv: ['--conditions=@whoa/source', '--no-warnings', '--expose-gc'],
  });
  const said: { type: string }[] = [];
  child.on('message', (message) => said.push(message as { type: string }));
  const hear = async <T>(type: string): Promise<T> => {
    for (;;) {
      const index = said.findIndex((message) => message.type === type);
      if (index >= 0) return said.splice(index, 1)[0] as T;
      await nextMessage(child);
    }
  };
  await hear('ready');
  return {
    send: (work) => void child.send(work),
    hear,
    figures() {
      child.send('figures');
      return hear('figures');
    },
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  };
}

function nextMessage(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => reject(new Error('a process of the bench ended'));
    child.once('exit', end);
    child.once('message', () => {
      child.off('exit', end);
      resolve();
    });
  });
}

/** Creates tasks that talk, by the build of a repository. */
export async function createTalking(folder: string, config: TaskStoreConfig, count: number): Promise<string[]> {
  const program = pathToFileURL(join(folder, 'packages/tasks/dist/index.js')).href;
  const { createTaskStore } = (await import(program)) as typeof import('@whoa/tasks');
  await using store = createTaskStore(config);
  const one = async (): Promise<string> => {
    const receipt = await store.create({ tenant: TENANT, agent: 'talker', input: 'talk' });
    if (receipt.result !== 'created') throw new Error(receipt.result);
    return receipt.task.id;
  };
  return await Promise.all(Array.from({ length: count }, one));
}

/** The processor time of all threads of a process. */
export function threadsCpuMs(pid: number): number {
  const folder = `/proc/${pid}/task`;
  const nanos = readdirSync(folder).map((thread) =>
    Number(readFileSync(`${folder}/${thread}/schedstat`, 'utf8').split(' ')[0]),
  );
  return nanos.reduce((sum, one) => sum + one, 0) / 1e6;
}
