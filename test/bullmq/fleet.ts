// `whoa serve` and `whoa worker` as processes, with BullMQ in front of a store.
import { createTaskStore, type NewTask, type TaskRecord, type TaskStore } from '@whoa/tasks';
import { Queue } from 'bullmq';
import { expect, onTestFinished } from 'vitest';
import { type RunningCommand, startCommand } from '../command/process.ts';
import { createHome, type Home } from '../command/terminal.ts';
import { borrowPostgres, borrowRedis } from '../servers/borrow.ts';

export const POLL = { timeout: 60_000, interval: 20 };
const TOKEN = 'a-token-for-the-tests-of-the-engine';
const TENANT = 'local';

interface FleetOptions {
  /** Further options of `bullmq()`, as code. */
  readonly options?: string;
  /** The Redis of the queue, if a test stops it. */
  readonly queueUrl?: string;
}

export interface Fleet {
  readonly store: TaskStore;
  readonly queue: Queue;
  readonly home: Home;
  /** Starts a server. Without an engine, tasks come from the store. */
  readonly serve: (config?: Config, args?: readonly string[]) => Promise<FleetServer>;
  readonly worker: (config?: Config, args?: readonly string[]) => Promise<RunningCommand>;
  readonly get: (id: string) => Promise<TaskRecord>;
  readonly statusIs: (id: string, status: string) => Promise<void>;
  /** Nothing waits in the queue, and nothing is handed out. */
  readonly isEmpty: () => Promise<void>;
}

type Config = 'engine' | 'plain';

interface FleetServer extends RunningCommand {
  readonly ask: (path: string, body?: object) => Promise<Response>;
  /** Creates a task and returns its id. A prompt with 'slow' lasts until it is stopped. */
  readonly create: (input: string, task?: Partial<NewTask>) => Promise<string>;
}

const AGENTS = `
  import { bullmq } from '@whoa/bullmq';
  import { createScriptedModel } from '@whoa/core/testing';
  import { createAgent, defineConfig } from 'whoa';
  const reply = ({ messages }) => JSON.stringify(messages).includes('slow') ? ['Once ', { waitMs: 600_000 }] : ['done'];
  const agents = { writer: () => createAgent({ name: 'writer', model: createScriptedModel([reply]) }) };
`;

export async function createFleet({ options = '', queueUrl }: FleetOptions = {}): Promise<Fleet> {
  const redis = await borrowRedis();
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const postgres = await borrowPostgres();
  onTestFinished(() => postgres[Symbol.asyncDispose]());
  const { host, port } = readAddress(queueUrl ?? redis.url);
  const connection = `connection: { host: '${host}', port: ${port}, retryStrategy: () => 50 }`;
  const rest = `store: '${postgres.url}', agents, stopMode: { drainMs: 100, abortMs: 1_000 }`;
  const home = createHome({
    'engine.config.ts': `${AGENTS} export default defineConfig({ ${rest}, engine: bullmq({ ${connection}, ${options} }) });`,
    'plain.config.ts': `${AGENTS} export default defineConfig({ ${rest} });`,
  });
  onTestFinished(() => home[Symbol.dispose]());
  const store = createTaskStore(postgres.url);
  onTestFinished(() => store[Symbol.asyncDispose]());
  const queue = new Queue('whoa', { connection: { host, port, retryStrategy: () => 50 } });
  queue.on('error', () => {});
  onTestFinished(() => queue.close());
  const start = (command: string, config: Config, args: readonly string[]): RunningCommand =>
    startCommand(home, [command, '--config', `${config}.config.ts`, ...args], { WHOA_TOKEN: TOKEN });
  const get = async (id: string): Promise<TaskRecord> => (await store.get({ tenant: TENANT, id }))!;
  return {
    store,
    queue,
    home,
    get,
    async serve(config = 'engine', args = []) {
      const server = start('serve', config, ['--port', '0', ...args]);
      const { url } = (await server.waitFor({ type: 'listening' })) as { url: string };
      return { ...server, ...createClient(url) };
    },
    async worker(config = 'engine', args = []) {
      const worker = start('worker', config, ['--sandbox', 'none', '--health-port', '0', ...args]);
      await worker.waitFor({ type: 'working' });
      return worker;
    },
    async statusIs(id, status) {
      await expect.poll(async () => (await get(id)).status, POLL).toBe(status);
    },
    async isEmpty() {
      const none = { active: 0, prioritized: 0, wait: 0 };
      await expect.poll(() => queue.getJobCounts('active', 'prioritized', 'wait'), POLL).toEqual(none);
    },
  };
}

/** Returns the status of a worker's `/readyz`. */
export async function readReadiness(worker: RunningCommand): Promise<number> {
  const { health } = worker.lines.find(({ type }) => type === 'working') as { health?: string };
  return (await fetch(`${health}/readyz`)).status;
}

/** Ends a process with SIGTERM, and returns its exit code. */
export async function end(running: RunningCommand): Promise<number | null> {
  running.kill('SIGTERM');
  return (await running.closed)[0];
}

function readAddress(url: string): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

function createClient(url: string): Pick<FleetServer, 'ask' | 'create'> {
  const ask: FleetServer['ask'] = (path, body) =>
    fetch(url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
  return {
    ask,
    async create(input, task = {}) {
      const response = await ask('/v1/tasks', { agent: 'writer', input, ...task });
      expect(response.status).toBe(201);
      return ((await response.json()) as { task: TaskRecord }).task.id;
    },
  };
}
