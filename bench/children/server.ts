// One server process: the task API, or the minimum that could do its work. argv: kind, a store's configuration, allowed tokens.
import { createAccess, createTaskApi, createTokenAuthenticator, listen, USER_RIGHTS } from '@whoa/server';
import { createTaskStore, type TaskStore, type TaskStoreConfig } from '@whoa/tasks';
import { Hono } from 'hono';
import { streamSSE } from 'hono/streaming';
import { openBare } from '../stores/cases.ts';

const HEARTBEAT_MS = 15_000;
const NO_LIMITS = { requestsPerSecond: 1e6, requestsBurst: 1e6, maxStreams: 1e6 };
const [what = 'ours', config = '{}', clients = '[]'] = process.argv.slice(2);
const store = createTaskStore(JSON.parse(config) as TaskStoreConfig);
const { port } = await listen(what === 'bare' ? createBare(store) : createApi());
process.on('message', () => {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  process.send?.({ type: 'usage', rss, heapUsed, cpuMs: (user + system) / 1_000 });
});
// The parent was killed: exit.
process.on('disconnect', () => process.exit());
process.send?.({ type: 'listening', port });

function createApi() {
  const known = JSON.parse(clients) as { tenant: string; sha256: string }[];
  const authenticate = createTokenAuthenticator(
    known.map((one) => ({ ...one, name: one.tenant, rights: USER_RIGHTS })),
  );
  const limits = what === 'limited' ? {} : NO_LIMITS;
  return createTaskApi({ store, access: createAccess({ authenticate, limits }) });
}

/** Cancels on request, opens streams that only report that they are open, and forwards published text. */
function createBare(tasks: TaskStore) {
  const app = new Hono();
  const published = openBare(JSON.parse(config) as TaskStoreConfig);
  app.get('/published/:name', (context) =>
    streamSSE(context, async (stream) => {
      const { promise: gone, resolve } = Promise.withResolvers<void>();
      stream.onAbort(resolve);
      await published.subscribe(context.req.param('name'), (text) => stream.writeSSE({ data: text }));
      await stream.writeSSE({ event: 'open', data: '' });
      await gone;
    }),
  );
  app.get('*', () => new Response(createBareStream(), { headers: { 'content-type': 'text/event-stream' } }));
  app.post('/v1/tasks/:id/cancel', async (context) => {
    const { mode } = (await context.req.json()) as { mode: 'now' };
    return Response.json(await tasks.cancel({ tenant: 'bench', id: context.req.param('id') }, {}, { mode }));
  });
  return { fetch: (request: Request) => Promise.resolve(app.fetch(request)) };
}

function createBareStream(): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let timer: NodeJS.Timeout | undefined;
  return new ReadableStream({
    start(controller) {
      controller.enqueue(encoder.encode('retry: 1000\n\n'));
      timer = setInterval(() => controller.enqueue(encoder.encode(': beat\n\n')), HEARTBEAT_MS);
    },
    cancel: () => clearInterval(timer),
  });
}
