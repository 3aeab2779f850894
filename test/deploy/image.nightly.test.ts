// The image of deploy/ in containers: alone, and as the services of compose.yaml.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startProcess } from '../command/process.ts';
import { type BorrowedServer, borrowPostgres } from '../servers/borrow.ts';
import { freePort } from '../servers/free-port.ts';
import { findNewerPostgres } from '../servers/newer-postgres.ts';
import { startPostgres } from '../servers/postgres.ts';
import { query } from '../servers/query.ts';
import { startServices } from './compose-services.ts';
import { buildah, buildImage, IMAGE, RUN, reason } from './image.ts';

const TOKEN = 'a-token-for-the-tests-of-the-image';
/** As in compose.yaml: only /tmp and /workspace are writable. */
const CONTAINED = ['--read-only', '--user', '1000:1000', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];
const WRITABLE = ['--tmpfs', '/tmp', '--tmpfs', '/workspace'];

function podman(env: Readonly<Record<string, string>>, args: readonly string[]): string[] {
  const given = Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  const where = ['--network', 'host', ...CONTAINED, ...WRITABLE];
  return [...RUN, ...where, ...given, IMAGE, ...args, '--config', '/app/whoa.config.ts'];
}

describe.skipIf(reason !== '')('the image', () => {
  let store: BorrowedServer;
  beforeAll(async () => {
    await buildImage();
    store = await borrowPostgres();
  }, 1_800_000);
  afterAll(() => store?.[Symbol.asyncDispose]());

  const start = (args: readonly string[], env: Record<string, string> = {}) => {
    const given = { STORE_URL: store.url, WHOA_TOKEN: TOKEN, ...env };
    const folder = mkdtempSync(join(tmpdir(), 'whoa-image-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    return startProcess([...podman(given, args), '--json'], {
      cwd: folder,
      env: process.env as Record<string, string>,
    });
  };

  test('the image plans a migration, runs a server and a worker, not as root and without writing to itself, and ends in its grace period', async () => {
    const [command = '', ...rest] = podman({ STORE_URL: store.url }, ['migrate', '--plan']);
    const planned = spawnSync(command, rest, { encoding: 'utf8' });
    expect(planned.status, planned.stderr).toBe(0);
    const startedAt = performance.now();
    const server = start(['serve', '--host', '127.0.0.1', '--port', `${await freePort()}`]);
    const { url } = (await server.waitFor({ type: 'listening' })) as { url: string };
    const startMs = performance.now() - startedAt;
    const health = await freePort();
    const worker = start(['worker', '--sandbox', 'none', '--yes', '--health-port', `${health}`], {
      WHOA_MODEL: 'compatible:http://127.0.0.1:9/v1:none',
    });
    await worker.waitFor({ type: 'working' });
    expect((await fetch(`http://127.0.0.1:${health}/readyz`)).status).toBe(200);
    const created = await fetch(`${url}/v1/tasks`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ agent: 'assistant', input: 'hello' }),
    });
    const { id } = ((await created.json()) as { task: { id: string } }).task;
    // No model answers there: the task reaches the worker, and that is all it shows.
    await worker.waitFor({ type: 'task-start', id });
    const stoppedAt = performance.now();
    for (const one of [server, worker]) one.kill('SIGTERM');
    expect(await Promise.all([server.closed, worker.closed])).toEqual([
      [0, null],
      [0, null],
    ]);
    const stopMs = performance.now() - stoppedAt;
    expect(stopMs).toBeLessThan(47_000);
    const [{ size }] = JSON.parse(buildah('images', '--json', IMAGE)) as [{ size: string }];
    console.log(JSON.stringify({ size, startMs: Math.round(startMs), stopMs: Math.round(stopMs) }));
  });

  test('the user of the image is not root, and can write to /tmp and /workspace but not to the root file system', () => {
    const [command = '', ...rest] = RUN;
    const inside = ['--network', 'none', ...CONTAINED, ...WRITABLE, '--entrypoint', 'sh'];
    const script = 'id -u; touch /app/x 2>/dev/null || echo read-only; touch /tmp/x /workspace/x && echo writable';
    const { stdout, stderr } = spawnSync(command, [...rest, ...inside, IMAGE, '-c', script], {
      encoding: 'utf8',
    });
    expect(stdout.trim().split('\n'), stderr).toEqual(['1000', 'read-only', 'writable']);
  });

  test('the services of compose.yaml run as the file says on PostgreSQL 17: a task runs in one of the workers, and is cancelled through the other server', async () => {
    await using postgres = await startPostgres({ binaries: await findNewerPostgres('17.10') });
    await query(postgres.url, "CREATE ROLE whoa LOGIN PASSWORD 'secret'");
    await query(postgres.url, 'CREATE DATABASE whoa OWNER whoa');
    await using provider = await startLoopbackProvider({
      script: [{ parts: [{ text: ['Once upon ', { stall: true }] }] }],
    });
    const model = Number(new URL(provider.url).port);
    await using services = await startServices({
      env: {
        STORE_PASSWORD: 'secret',
        STORE_URL: 'postgres://whoa:secret@postgres/whoa',
        WHOA_TOKEN: TOKEN,
        WHOA_MODEL: `compatible:http://model:4010/v1:none`,
      },
      names: ['postgres', 'model'],
      ports: { 5432: Number(new URL(postgres.url).port), 4010: model },
    });
    const { servers, workers, request } = services;
    expect([servers.length, workers.length]).toEqual([2, 3]);
    const all = [...servers, ...workers];
    await Promise.all(all.map((one) => one.healthy()));
    const script =
      'id -u; touch /app/x 2>&1 | grep -o Read-only; touch /tmp/x /workspace/x && grep -E "NoNewPrivs|CapEff" /proc/1/status';
    for (const one of all)
      expect((await one.run('sh', '-c', script)).output.split(/\s+/)).toEqual([
        '1000',
        'Read-only',
        'CapEff:',
        '0000000000000000',
        'NoNewPrivs:',
        '1',
      ]);
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
    const post = (server: number, path: string, body: object) =>
      request(`http://${servers[server]!.address}:8787/v1/tasks${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
    const created = await post(0, '', { agent: 'assistant', input: 'Tell me a story' });
    const { id } = (JSON.parse(created.body) as { task: { id: string } }).task;
    const asked = await provider.waitForRequest(0);
    const cancelled = await post(1, `/${id}/cancel`, { reason: 'enough', mode: 'now' });
    expect(JSON.parse(cancelled.body)).toMatchObject({ result: 'accepted' });
    expect(await asked.waitForClose()).toBe('client');
    const events = await request(`http://${servers[0]!.address}:8787/v1/tasks/${id}/events`, { headers });
    expect(events.body).toMatch(/event: end\ndata: .*"status":"cancelled".*enough/);
    await Promise.all(all.map((one) => one.stop()));
    // 137 would be SIGKILL at the end of the grace period.
    expect(await Promise.all(all.map((one) => one.ended))).toEqual(all.map(() => 0));
  });
});

test.runIf(reason !== '')(`the image is not built: ${reason}`, () => {});
