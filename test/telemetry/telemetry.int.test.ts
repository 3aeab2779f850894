// Processes with a real SDK, as users register it, and a collector on this machine; and what Prometheus would read.
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { TaskRecord } from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import { METRICS, type MetricName, toPrometheusName } from '../../packages/server/src/observe/telemetry/metrics.ts';
import { startCommand } from '../command/process.ts';
import { createHome, type Home } from '../command/terminal.ts';
import { ROOT } from '../docs/pages.ts';
import { type ReceivedSpan, startReceiver } from './receiver.ts';

const TOKEN = 'a-token-for-the-tests-of-telemetry';
const SCRIPT = [['Let me see. ', { call: 'bash', input: { command: 'echo ok' } }], ['All is well.']];

function openHome(): Home {
  const home = createHome({
    'script.json': JSON.stringify(SCRIPT),
    'config/whoa/whoa.config.ts': `import { defineConfig } from 'whoa'; export default defineConfig({});`,
  });
  onTestFinished(() => home[Symbol.dispose]());
  return home;
}

async function startBoth(home: Home, env: Record<string, string> = {}) {
  const work = ['--sandbox', 'none', '--yes', '--model', 'scripted:script.json', '--metrics-port', '0'];
  const server = startCommand(home, ['serve', '--port', '0'], { ...env, WHOA_TOKEN: TOKEN });
  const worker = startCommand(home, ['worker', ...work], env);
  const { url } = (await server.waitFor({ type: 'listening' })) as { url: string };
  const { metrics } = (await worker.waitFor({ type: 'working' })) as { metrics: string };
  const ask = (path: string, body?: object, token = TOKEN): Promise<Response> =>
    fetch(url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
  const create = async (): Promise<string> => {
    const response = await ask('/v1/tasks', { agent: 'assistant', input: 'Is all well?' });
    return ((await response.json()) as { task: TaskRecord }).task.id;
  };
  return { server, worker, ask, create, metrics };
}

const findAttribute = ({ attributes }: ReceivedSpan, key: string): unknown =>
  Object.values(attributes.find((one) => one.key === key)?.value ?? {})[0];

test('a worker with a registered SDK sends its last spans and all metrics before it ends', async () => {
  const receiver = await startReceiver();
  const { worker, server, create } = await startBoth(openHome(), {
    NODE_OPTIONS: `--no-warnings --import ${join(ROOT, 'examples/otel.ts')}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
  });
  const id = await create();
  await worker.waitFor({ type: 'task-end', id });
  for (const one of [worker, server]) one.kill('SIGTERM');
  expect(await Promise.all([worker.closed, server.closed])).toEqual([
    [0, null],
    [0, null],
  ]);
  const task = receiver.spans.find((span) => findAttribute(span, 'whoa.task.id') === id)!;
  const run = receiver.spans.find(({ parentSpanId }) => parentSpanId === task.spanId)!;
  const call = receiver.spans.find(({ parentSpanId }) => parentSpanId === run.spanId)!;
  expect([task, run, call].map(({ name }) => name)).toEqual([
    'whoa.task assistant',
    'invoke_agent assistant',
    'execute_tool bash',
  ]);
  for (const name of ['whoa.claim.ended', 'whoa.task.created', 'whoa.task.duration'])
    expect(receiver.metrics).toContain(name);
});

test('Prometheus reads the metrics of a worker on its own port, and those of a server as an operator', async () => {
  const { worker, ask, create, metrics } = await startBoth(openHome());
  const id = await create();
  await worker.waitFor({ type: 'task-end', id });
  const read = await fetch(`${metrics}/metrics`);
  expect(read.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const text = await read.text();
  expect(text).toContain('whoa_claim_ended_total{agent="assistant",status="success"} 1\n');
  expect(text).toMatch(/whoa_journal_written_bytes_total [1-9]/);
  expect(text).toMatch(/whoa_model_tokens_total\{agent="assistant",type="output"\} [1-9]/);
  for (const name of Object.keys(METRICS) as MetricName[])
    if (METRICS[name].kind === 'counter' && METRICS[name].labels.length === 0)
      expect(text).toMatch(new RegExp(`^${toPrometheusName(name)} `, 'm'));
  // Of the whole store: what waits in it, and each end once, whoever wrote it. The server may be the one that reads it for both.
  const both = async (): Promise<string> => (await fetch(`${metrics}/metrics`)).text();
  await expect.poll(both).toMatch(/^whoa_task_ended_total\{agent="assistant",status="success"[^}]*\} 1$/m);
  await expect.poll(both).toMatch(/^whoa_open_questions \d/m);
  expect((await fetch(metrics)).status).toBe(404);
  expect(await (await ask('/metrics')).text()).toContain('whoa_task_created_total{agent="assistant"} 1\n');
  expect((await ask('/metrics', undefined, 'another')).status).toBe(401);
});

test('a cancelled scrape, and one during the end of the worker, disturb nothing', async () => {
  const { worker, metrics } = await startBoth(openHome());
  const { hostname, port } = new URL(metrics);
  const scrape = connect(Number(port), hostname);
  await once(scrape, 'connect');
  scrape.write('GET /metrics HTTP/1.1\r\nHost: worker\r\n\r\n', () => scrape.destroy());
  await once(scrape, 'close');
  expect((await fetch(`${metrics}/metrics`)).status).toBe(200);
  const last = fetch(`${metrics}/metrics`).then(
    ({ status }) => status,
    () => 'closed',
  );
  worker.kill('SIGTERM');
  expect(await worker.closed).toEqual([0, null]);
  expect([200, 'closed']).toContain(await last);
});
