// Every command that the pages of docs/operations name, run with the configuration of deploy/ on real servers.
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { createTaskStore, type TaskStore } from '@whoa/tasks';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { startCommand } from '../command/process.ts';
import { createHome, type Home } from '../command/terminal.ts';
import { findBlocks, ROOT, readProse } from '../docs/pages.ts';
import { type BorrowedServer, borrowPostgres } from '../servers/borrow.ts';
import { create, running } from '../tasks/held-task.ts';

const CONFIG = ['--config', join(ROOT, 'deploy/whoa.config.ts')];
const AGENT = 'writer';
const LOCAL = { tenant: 'local', agent: AGENT };

/** Commands that no test can run here, or that are run elsewhere. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'export WHOA_TOKEN=$(openssl rand -hex 24) STORE_PASSWORD=$(openssl rand -hex 24)': 'sets variables of your shell',
  'npm run image': 'needs a registry; image.nightly.test.ts runs it with a copy of the folder and with Buildah',
  'npm run image -- ../my-deploy': 'the same',
  'npm run image -- ../my-deploy podman build -t registry.example.com/whoa --build-arg npm_config_registry=https://registry.example.com':
    'the same',
  'docker compose -f deploy/compose.yaml up':
    'needs Docker; image.nightly.test.ts runs its services in containers, processes.int.test.ts without',
  'kubectl create secret generic whoa --from-literal=store-url=postgres://whoa:PASSWORD@postgres/whoa --from-literal=anthropic-api-key=KEY --from-file=tokens.json':
    'needs a Kubernetes cluster',
  'kubectl apply -f deploy/kubernetes': 'needs a Kubernetes cluster; deploy.test.ts checks the files',
  'curl http://127.0.0.1:9464/metrics': 'the worker of the line before is asked for its metrics instead',
  "NODE_OPTIONS='--import ./otel.ts' OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 whoa worker":
    'needs a collector; the tests of telemetry load the file',
  'npm install @opentelemetry/exporter-prometheus @opentelemetry/sdk-metrics': 'needs a registry',
  'whoa serve': 'processes.int.test.ts runs it with its options',
  'whoa worker': 'runs with its options, from the other places that name it',
  'whoa halt': 'only names the command; it runs with a target',
  'whoa cancel': 'only names the command; it runs with a task',
  'whoa pause': 'only names the command; it runs with a target',
  'whoa resume': 'only names the command; it runs after each pause',
  'whoa requeue': 'only names the command; it runs with a task',
  'whoa run': 'only names the command; it needs a prompt',
  'whoa chat': 'only names the command; it needs a terminal',
  'whoa approve': 'only names the command; it needs a question',
  'whoa acp -- COMMAND': 'only names the command; it needs an agent of another make',
  'whoa engine off AGENT': 'needs an engine; the tests of the engine run it',
  'whoa doctor': 'checks the machine, and exits with 1 without the key of a provider',
};

const PROGRAM = /^(?:[A-Z_]+=\S+ |'[^']*' )*(whoa|curl|docker|kubectl|npm|export) /;

/** Returns the lines of blocks that start a program, and commands that the text names. */
function findCommands(page: string): string[] {
  const shown = findBlocks(page).filter(({ language }) => ['', 'sh', 'console'].includes(language));
  const lines = shown.flatMap(({ text }) => text.split('\n').map((line) => line.replace(/^\$ /, '')));
  const named = [...readProse(page).matchAll(/`(whoa [a-z][^`]*)`/g)].map(([, command]) => command!);
  return [...lines.filter((line) => PROGRAM.test(`${line} `) || line.startsWith('NODE_OPTIONS=')), ...named];
}

const commands = [
  ...new Set(globSync('docs/operations/*.md', { cwd: ROOT }).toSorted().flatMap(findCommands)),
].toSorted();
const isServing = (command: string): boolean => command.startsWith('whoa worker ');
const [served, ended] = [commands.filter(isServing), commands.filter((one) => !isServing(one) && !(one in NOT_RUN))];

let postgres: BorrowedServer;
beforeAll(async () => {
  postgres = await borrowPostgres();
  return () => {
    delete process.env['STORE_URL']; // Other files share this process.
    return postgres[Symbol.asyncDispose]();
  };
});

function openHome(): Home {
  const home = createHome({ 'script.json': '[["done"]]' });
  onTestFinished(() => home[Symbol.dispose]());
  return home;
}

test('commands that are not run are still in a page', () => {
  expect(Object.keys(NOT_RUN).filter((command) => !commands.includes(command))).toEqual([]);
  expect(ended.length).toBeGreaterThan(15);
});

/** The arguments of a command, with a real task and real names in place of the placeholders. */
async function toArguments(command: string, store: TaskStore): Promise<string[]> {
  const words = command.split(' ').slice(1);
  const names: Record<string, string> = { '--agent': AGENT, '--tenant': 'acme' };
  const task = async (): Promise<string> => {
    if (words[0] === 'cancel') return (await create(store, LOCAL)).id;
    const { id, by } = await running(store, LOCAL);
    await store.finish(by, { status: words[0] === 'requeue' ? 'failed' : 'success' });
    return id;
  };
  const named = words.map((word, i) => (word === 'NAME' ? names[words[i - 1]!]! : word));
  return named.includes('TASK') ? named.with(named.indexOf('TASK'), await task()) : named;
}

test.each(ended)('%s works with the configuration of deploy/', async (command) => {
  const home = openHome();
  await using store = createTaskStore(postgres.url);
  await create(store, { agent: AGENT });
  // The configuration is loaded once in this process, and then takes it away.
  process.env['STORE_URL'] = postgres.url;
  const words = await toArguments(command, store);
  const { status, stderr } = await home.main([...words, ...CONFIG]);
  expect(status, stderr).toBe(0);
  if (words[0] !== 'pause' && words[0] !== 'halt') return;
  expect((await store.queues()).paused).toHaveLength(1);
  expect(await home.main(['resume', ...words.slice(1), ...CONFIG])).toMatchObject({ status: 0 });
  expect((await store.queues()).paused).toEqual([]);
});

test.each(served)('%s works with the configuration of deploy/', async (command) => {
  const args = command
    .split(' ')
    .slice(1)
    .map((word) => (/^\d{4}$/.test(word) ? '0' : word));
  const worker = startCommand(openHome(), [...args, ...CONFIG], {
    STORE_URL: postgres.url,
    WHOA_MODEL: 'scripted:script.json',
  });
  const { health, metrics } = await worker.waitFor({ type: 'working' });
  for (const [path, url] of [
    ['/readyz', health],
    ['/metrics', metrics],
  ] as const) {
    if (url !== undefined) expect((await fetch(new URL(path, url as string))).status).toBe(200);
  }
  worker.kill('SIGTERM');
  expect((await worker.closed)[0]).toBe(0);
});

test('a store in Postgres is planned, prepared, used and finished with the configuration of deploy/', async () => {
  await using postgres = await borrowPostgres();
  const home = openHome();
  const whoa = (...args: string[]): string => {
    const { status, stdout, stderr } = home.whoa([...args, ...CONFIG], { env: { STORE_URL: postgres.url } });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    return stdout;
  };
  expect(whoa('migrate', '--plan')).toContain("does not exist yet; 'whoa migrate' creates it with format 2");
  expect(whoa('migrate')).toContain('There is nothing to do.');
  await using store = createTaskStore(postgres.url);
  const { id } = await create(store, LOCAL);
  expect(whoa('tasks')).toContain(id.slice(0, 10));
  expect(whoa('migrate', '--finish')).toContain('There is nothing to do.');
});

test('migrate fails for a store without an address, with what to write', async () => {
  const home = createHome({ 'whoa.config.ts': 'export default { store: { claim() {} } };' });
  onTestFinished(() => home[Symbol.dispose]());
  const { status, stderr } = await home.main(['migrate', '--config', 'whoa.config.ts']);
  expect({ status, stderr }).toEqual({
    status: 2,
    stderr:
      "whoa migrate: the store of your configuration has no address: write 'store: process.env.STORE_URL' instead of creating it, or call migrateStore of @whoa/tasks\n",
  });
});
