// One trace over processes, with a real SDK in each: from the request to the tool on the worker, and the cancel.
import { join } from 'node:path';
import type { TaskRecord } from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import { startCommand } from '../command/process.ts';
import { createHome } from '../command/terminal.ts';
import { ROOT } from '../docs/pages.ts';
import { borrowPostgres } from '../servers/borrow.ts';
import { type ReceivedSpan, type Receiver, startReceiver } from './receiver.ts';

const TOKEN = 'a-token-for-the-tests-of-traces';
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CREATE_SPAN = 'b7ad6b7169203331';
const OTHER_TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CANCEL_SPAN = '00f067aa0ba902b7';
const SCRIPT = [['Let me see. ', { call: 'bash', input: { command: 'echo begun; sleep 300' } }], ['All is well.']];

async function startFleet(url: string, serverEnv: Record<string, string>, receiver: Receiver) {
  const config = `export default { store: '${url}', drainMs: 0 };`;
  const home = createHome({ 'script.json': JSON.stringify(SCRIPT), 'config/whoa/whoa.config.ts': config });
  onTestFinished(() => home[Symbol.dispose]());
  const sdk = {
    NODE_OPTIONS: `--no-warnings --import ${join(ROOT, 'examples/otel.ts')}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
  };
  const server = startCommand(home, ['serve', '--port', '0'], { WHOA_TOKEN: TOKEN, ...sdk, ...serverEnv });
  const work = ['--sandbox', 'none', '--yes', '--model', 'scripted:script.json'];
  const worker = startCommand(home, ['worker', ...work], sdk);
  const { url: at } = (await server.waitFor({ type: 'listening' })) as { url: string };
  await worker.waitFor({ type: 'working' });
  const post = async (path: string, body: object, traceparent: string): Promise<Response> =>
    fetch(at + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', traceparent },
      body: JSON.stringify(body),
    });
  return { server, worker, at, post };
}

/** Reads the events of a task until they contain a text. */
async function readUntil(at: string, id: string, wanted: string): Promise<void> {
  const response = await fetch(`${at}/v1/tasks/${id}/events`, { headers: { authorization: `Bearer ${TOKEN}` } });
  let text = '';
  for await (const chunk of response.body!) {
    text += new TextDecoder().decode(chunk as Uint8Array);
    if (text.includes(wanted)) return;
  }
  throw new Error(`the stream ended: ${text}`);
}

test.each([
  ['a server with an SDK', {}],
  ['a server without an SDK', { NODE_OPTIONS: '--no-warnings' }],
] as const)(
  'the spans of a worker are part of the trace of the request, and the cancel is linked (%s)',
  async (_name, serverEnv) => {
    await using store = await borrowPostgres();
    const receiver = await startReceiver();
    const { server, worker, at, post } = await startFleet(store.url, serverEnv, receiver);
    const task = { agent: 'assistant', input: 'Is all well?' };
    const created = await post('/v1/tasks', task, `00-${TRACE}-${CREATE_SPAN}-01`);
    const { id, traceparent } = ((await created.json()) as { task: TaskRecord }).task;
    expect(traceparent).toBe(`00-${TRACE}-${CREATE_SPAN}-01`);
    // Not its output: the command is in the reply, before the call starts.
    await readUntil(at, id, '"call-start"');
    const cancelled = await post(`/v1/tasks/${id}/cancel`, { mode: 'now' }, `00-${OTHER_TRACE}-${CANCEL_SPAN}-01`);
    expect(cancelled.status).toBe(202);
    await worker.waitFor({ type: 'task-end', id, status: 'cancelled' });
    for (const one of [worker, server]) one.kill('SIGTERM');
    const closed = await Promise.all([worker.closed, server.closed]);

    const wanted = ['whoa.task', 'invoke_agent', 'execute_tool'];
    // The end of a process and its last request can be noticed in any order.
    await expect
      .poll(() => receiver.spans.map(({ name }) => name), {
        message: `${JSON.stringify(closed)} ${worker.errors()} ${server.errors()}`,
      })
      .toEqual(expect.arrayContaining(wanted.map((name) => expect.stringContaining(name) as string)));
    const find = (name: string): ReceivedSpan => receiver.spans.find((span) => span.name.startsWith(name))!;
    const chain = wanted.map(find);
    expect(chain.map(({ traceId }) => traceId)).toEqual([TRACE, TRACE, TRACE]);
    const [taskSpan, run] = chain;
    expect(chain.map(({ parentSpanId }) => parentSpanId)).toEqual([CREATE_SPAN, taskSpan!.spanId, run!.spanId]);
    // One of the task, and one of the run in it.
    const stops = receiver.spans.filter(({ name }) => name === 'whoa.cancel');
    expect(new Set(stops.map(({ parentSpanId }) => parentSpanId))).toEqual(new Set([taskSpan!.spanId, run!.spanId]));
    const links = [{ traceId: OTHER_TRACE, spanId: CANCEL_SPAN }];
    for (const stop of stops) expect(stop).toMatchObject({ traceId: TRACE, links });
  },
);

test('a header that is not a trace context is ignored', async () => {
  await using store = await borrowPostgres();
  const { post } = await startFleet(store.url, {}, await startReceiver());
  for (const wrong of ['nonsense', `00-${'0'.repeat(32)}-${CREATE_SPAN}-01`, `ff-${TRACE}-${CREATE_SPAN}-01`]) {
    const created = await post('/v1/tasks', { agent: 'assistant', input: 'hello' }, wrong);
    expect(created.status).toBe(201);
    expect(((await created.json()) as { task: TaskRecord }).task).not.toHaveProperty('traceparent');
  }
});
