// The deployment of deploy/compose.yaml as plain processes on a real Postgres: its commands, its environment, its health checks.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TaskRecord } from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import { type RunningCommand, startProcess } from '../command/process.ts';
import { BIN, createHome, type Home } from '../command/terminal.ts';
import { ROOT } from '../docs/pages.ts';
import { borrowPostgres } from '../servers/borrow.ts';
import { interpolate, readCompose, type Service } from './deployment.ts';

const TOKEN = 'a-token-for-the-tests-of-the-deployment';
const STORY = [['Once upon a time ', { waitMs: 600_000 }, 'it ended.']];
const { services } = readCompose();

/** As in the container: another user, only /tmp and the workspace writable, and no home. */
const contained = (home: Home): readonly string[] => {
  const workspace = home.folder.at('workspace');
  mkdirSync(workspace);
  // The sources and Node may be in /tmp, too.
  const programs = [ROOT, dirname(process.execPath)].flatMap((folder) => ['--ro-bind', folder, folder]);
  const writable = ['--bind', home.folder.path, home.folder.path, '--chdir', workspace];
  const user = ['--unshare-user', '--uid', '1000', '--gid', '1000', '--die-with-parent'];
  return [
    'bwrap',
    '--ro-bind',
    '/',
    '/',
    '--dev',
    '/dev',
    '--proc',
    '/proc',
    ...user,
    '--tmpfs',
    '/tmp',
    ...programs,
    ...writable,
  ];
};

interface Started {
  readonly running: RunningCommand;
  readonly service: Service;
}

/** Starts a process of a service. Ports are free ones, and the configuration is where it is here. */
function start(service: Service, home: Home, variables: Record<string, string>): Started {
  const places: Record<string, string> = { '/app/whoa.config.ts': join(ROOT, 'deploy/whoa.config.ts') };
  const args = service.command.map((arg) => places[arg] ?? (/^\d{4}$/.test(arg) ? '0' : arg));
  const env = Object.entries(service.environment).map(([name, value]) => [name, interpolate(value, variables)]);
  const given = { ...home.env, XDG_STATE_HOME: '/tmp/state', ...(Object.fromEntries(env) as Record<string, string>) };
  const running = startProcess([...contained(home), ...BIN, ...args, '--json'], { cwd: home.folder.path, env: given });
  return { running, service };
}

/** Runs the health check of a service against the port that it has here. */
function checkHealth({ healthcheck }: Service, url: string): number | null {
  const [kind, file = '', ...args] = healthcheck!.test;
  expect(kind).toBe('CMD');
  const at = args.map((arg) => arg.replace(/127\.0\.0\.1:\d+/, new URL(url).host));
  return spawnSync(file, at, { env: { PATH: process.env['PATH'] } }).status;
}

const times = <T>(service: Service, make: () => T): T[] => Array.from({ length: service.deploy!.replicas }, make);

test('two servers and three workers run, cancel and hand over tasks', async () => {
  const store = await borrowPostgres();
  onTestFinished(() => store[Symbol.asyncDispose]());
  const script = JSON.stringify(STORY);
  const open = (): Home => {
    const home = createHome({ 'story.json': script });
    onTestFinished(() => home[Symbol.dispose]());
    return home;
  };
  const variables = { STORE_URL: store.url, STORE_PASSWORD: 'not used', WHOA_TOKEN: TOKEN };
  const servers = times(services.server, () => start(services.server, open(), variables));
  const workers = times(services.worker, () => {
    const home = open();
    return start(services.worker, home, { ...variables, WHOA_MODEL: `scripted:${home.folder.at('story.json')}` });
  });
  const urls = await Promise.all(
    servers.map(async ({ running }) => toUrl(await running.waitFor({ type: 'listening' }), 'url')),
  );
  const healths = await Promise.all(
    workers.map(async ({ running }) => toUrl(await running.waitFor({ type: 'working' }), 'health')),
  );
  for (const url of urls) expect(checkHealth(services.server, url)).toBe(0);
  for (const url of healths) expect(checkHealth(services.worker, url)).toBe(0);

  const ask = async (url: string, body?: object): Promise<Response> =>
    fetch(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
  const [first = '', second = ''] = urls;
  const created = await ask(`${first}/v1/tasks`, { agent: 'assistant', input: 'Tell me a story' });
  expect(created.status).toBe(201);
  const { id } = ((await created.json()) as { task: TaskRecord }).task;

  const has =
    (type: string) =>
    async (from: readonly Started[]): Promise<Started> =>
      Promise.any(from.map(async (one) => (await one.running.waitFor({ type, id })) && one));
  const holder = await has('task-start')(workers);
  // Its name starts with its process id; bubblewrap would not pass the signal on.
  process.kill(
    Number.parseInt(holder.running.lines.find(({ type }) => type === 'working')!['worker'] as string, 10),
    'SIGTERM',
  );
  expect((await holder.running.closed)[0]).toBe(0);
  const others = workers.filter((worker) => worker !== holder);
  const next = await has('task-start')(others);
  expect(next).not.toBe(holder);

  expect((await ask(`${second}/v1/tasks/${id}/cancel`, { mode: 'now' })).status).toBe(202);
  await next.running.waitFor({ type: 'task-end', id, status: 'cancelled' });
  const { status, crashes } = (await (await ask(`${first}/v1/tasks/${id}`)).json()) as TaskRecord;
  expect({ status, crashes }).toEqual({ status: 'cancelled', crashes: 0 });
});

function toUrl(line: Readonly<Record<string, unknown>>, field: string): string {
  return line[field] as string;
}
