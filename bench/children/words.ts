// One process of bus-cpu and readers, on the sources of the repository in `folder`: it runs tasks that talk, reads them from
// the store, serves them, or reads them from a server.
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { TaskStoreConfig } from '@whoa/tasks';

export type Part = 'talk' | 'read' | 'serve' | 'listen';

/** What to do, once the process is ready. */
export interface Work {
  readonly ids?: readonly string[];
  /** Of the server to listen to. */
  readonly port?: number;
}

/** What a process has seen since it was last asked. */
export interface Figures {
  readonly words: number;
  readonly delays: readonly number[];
  readonly cpuMs: number;
  readonly rss: number;
}

export const TENANT = 'bench';
const MAX_DELAYS = 20_000;

const [folder = '', part = 'talk', config = '{}', gapMs = '20', count = '1'] = process.argv.slice(2);
const load = <T>(name: string): Promise<T> => import(pathToFileURL(join(folder, 'packages', name)).href) as Promise<T>;
const { createRunner, createTaskStore, followTask } = await load<typeof import('@whoa/tasks')>('tasks/src/index.ts');
const openStore = () => createTaskStore(JSON.parse(config) as TaskStoreConfig);

let words = 0;
let delays: number[] = [];

/** Words are the times at which they were said. */
function countWords(text: string): void {
  for (const [at] of text.matchAll(/\d{13}\.\d{3}/g)) {
    words++;
    if (delays.length < MAX_DELAYS) delays.push(now() - Number(at));
  }
}
const now = (): number => performance.timeOrigin + performance.now();

async function talk(): Promise<void> {
  const { createAgent } = await load<typeof import('@whoa/core')>('core/src/index.ts');
  const talker = createAgent({
    name: 'talker',
    planner: {
      async next(_history, { emit, token }) {
        for (;;) {
          token.throwIfCancelled();
          emit({ type: 'text', text: `${now().toFixed(3)} ` });
          await wait(Number(gapMs) * (0.5 + Math.random()));
        }
      },
    },
  });
  for (let i = 0; i < Number(count); i++)
    await createRunner({ store: openStore(), agents: { talker } }).serve({ concurrency: 1_000 });
}

async function read(ids: readonly string[]): Promise<void> {
  const store = openStore();
  const follow = async (id: string): Promise<void> => {
    for await (const seen of followTask(store, { tenant: TENANT, id }))
      if (seen.type === 'entry' && seen.event.type === 'text') countWords(seen.event.text);
  };
  await Promise.all(ids.map(follow));
}

async function serve(): Promise<void> {
  const server = await load<typeof import('@whoa/server')>('server/src/index.ts');
  const limits = { requestsPerSecond: 1e6, requestsBurst: 1e6, maxStreams: 1e6 };
  const authenticate = () => ({ tenant: TENANT, name: 'reader', rights: server.USER_RIGHTS });
  const access = server.createAccess({ authenticate, limits });
  const { port } = await server.listen(server.createTaskApi({ store: openStore(), access }));
  process.send?.({ type: 'listening', port });
}

/** Reads the text of the streams without parsing them: the server is measured. */
async function listen(ids: readonly string[], port: number): Promise<void> {
  for (const id of ids) {
    const socket = connect(port, '127.0.0.1');
    let rest = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      const whole = rest + text;
      const end = whole.lastIndexOf(' ') + 1;
      countWords(whole.slice(0, end));
      rest = whole.slice(end);
    });
    socket.write(`GET /v1/tasks/${id}/events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`);
    await new Promise((done) => socket.once('data', done));
  }
}

function tellFigures(): void {
  globalThis.gc?.();
  const { user, system } = process.cpuUsage();
  const { rss } = process.memoryUsage();
  process.send?.({ type: 'figures', words, delays, cpuMs: (user + system) / 1_000, rss });
  [words, delays] = [0, []];
}

process.on('message', (work: Work | 'figures') => {
  if (work === 'figures') return tellFigures();
  const { ids = [], port = 0 } = work;
  const doing = part === 'read' ? read(ids) : listen(ids, port).then(() => process.send?.({ type: 'open' }));
  doing.catch((error: unknown) => process.emitWarning(error as Error));
});
// The parent was killed: exit.
process.on('disconnect', () => process.exit());
if (part === 'talk') await talk();
if (part === 'serve') await serve();
process.send?.({ type: 'ready' });
