// The examples for people who keep their engine, on the real engines: pg-boss, graphile-worker and DBOS on a real
// Postgres, a real Restate, and Temporal's own environment for activities.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROOT, read } from '../docs/pages.ts';
import { freePort } from '../servers/free-port.ts';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';
import { query } from '../servers/query.ts';

const run = promisify(execFile);
const here = join(ROOT, 'examples/engines');
const PLAY_MS = 120_000;

let postgres: PostgresServer;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'whoa-engines-'));
  postgres = await startPostgres();
  if (existsSync(join(here, 'node_modules/.package-lock.json'))) return;
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  await run('npm', args, { cwd: here, timeout: 280_000 });
}, 300_000);

afterAll(async () => {
  await postgres[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** Returns the output of an example. */
async function runExample(file: string, ...args: string[]): Promise<string> {
  const env = { ...process.env, RESTATE_LOGGING: 'ERROR' };
  const { stdout } = await run(process.execPath, ['--conditions=@whoa/source', join(here, file), ...args], {
    timeout: PLAY_MS,
    env,
  });
  return stdout;
}

const DRAGON = 'at delivery 1, the task is cancelled';

test.each(['pg-boss.ts', 'graphile-worker.ts'])(
  '%s: a cancelled job ends cleanly, a repeated one has one task',
  async (file) => {
    expect((await runExample(file, await createDatabase())).split('\n')).toEqual([
      'a fox: completed at delivery 1, the task is success',
      `a dragon: completed ${DRAGON}`,
      'a dog: completed at delivery 2, the task is success',
      '3 tasks: success, cancelled, success',
      '',
    ]);
  },
);

test('DBOS: a workflow whose task was cancelled succeeds, and one that was cancelled stops its task', async () => {
  expect((await runExample('dbos.mjs', await createDatabase())).split('\n')).toEqual([
    'a fox: SUCCESS at delivery 1, the task is success',
    `a dragon: SUCCESS ${DRAGON}`,
    'a dog: SUCCESS at delivery 2, the task is success',
    `a whale: CANCELLED ${DRAGON}`,
    '4 tasks: success, cancelled, success, cancelled',
    '',
  ]);
});

test('Restate: an invocation whose task was cancelled succeeds, and one that was cancelled stops its task', async () => {
  const server = await startRestate();
  try {
    expect(
      (await runExample('restate.mjs', `sqlite:${join(folder, 'restate.db')}`, ...server.urls)).split('\n'),
    ).toEqual([
      'a fox: 200 at delivery 1, the task is success',
      `a dragon: 200 ${DRAGON}`,
      'a dog: 200 at delivery 2, the task is success',
      `a whale: 409 ${DRAGON}`,
      '4 tasks: success, cancelled, success, cancelled',
      '',
    ]);
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

test('Temporal: an activity whose task was cancelled completes, and one that was cancelled stops its task', async () => {
  expect((await runExample('temporal.mjs', `sqlite:${join(folder, 'temporal.db')}`)).split('\n')).toEqual([
    'a fox: completed at delivery 1, the task is success',
    `a dragon: completed ${DRAGON}, reason user`,
    'a dog: completed at delivery 1, the task is success',
    'a dog: completed at delivery 2, the task is success',
    `a whale: CancelledFailure ${DRAGON}, reason deadline`,
    '4 tasks: success, cancelled, success, cancelled',
    '',
  ]);
});

test('code that the page shows from an example is in the example', () => {
  const page = read('docs/guides/workers/engines.md');
  const excerpts = [...page.matchAll(/```js (\S+)\n(.*?)```/gs)];
  expect(excerpts.map(([, file]) => file)).toEqual(['pg-boss.ts', 'dbos.mjs', 'restate.mjs', 'temporal.mjs']);
  for (const [, file, code] of excerpts) {
    for (const line of code!.split('\n')) expect(read(`examples/engines/${file}`)).toContain(line.trim());
  }
});

let databases = 0;

async function createDatabase(): Promise<string> {
  const name = `engine_${databases++}`;
  await query(postgres.url, `CREATE DATABASE ${name}`);
  return postgres.url.replace(/[^/]*$/, name);
}

interface Restate extends AsyncDisposable {
  /** The ingress and the admin API. */
  readonly urls: readonly [string, string];
}

/** A Restate server on free loopback ports. */
async function startRestate(): Promise<Restate> {
  const [ingress, admin, fabric] = [await freePort(), await freePort(), await freePort()].map(
    (port) => `127.0.0.1:${port}`,
  );
  const binary = `@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`;
  const child = spawn(join(here, 'node_modules', binary), ['--base-dir', folder, '--no-logo'], {
    stdio: 'ignore',
    env: {
      ...process.env,
      RESTATE_INGRESS__BIND_ADDRESS: ingress,
      RESTATE_ADMIN__BIND_ADDRESS: admin,
      RESTATE_BIND_ADDRESS: fabric,
      RESTATE_DEFAULT_NUM_PARTITIONS: '1',
      RESTATE_DISABLE_TELEMETRY: 'true',
    },
  });
  const ended = once(child, 'exit');
  const isReady = async (url: string): Promise<boolean> => (await fetch(url).catch(() => undefined))?.ok === true;
  while (!(await isReady(`http://${admin}/health`)) || !(await isReady(`http://${ingress}/restate/health`))) {
    if (child.exitCode !== null) throw new Error(`restate-server ended with ${child.exitCode} instead of starting`);
    await wait(50);
  }
  return {
    urls: [`http://${ingress}`, `http://${admin}`],
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
