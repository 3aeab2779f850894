// One server process: the task API, or the least that could do its work. argv: what, a store's configuration, a token's hash.
import { createAccess, createTaskApi, createTokens, listen, OWN_RIGHTS } from '@whoa/server';
import { createTaskStore, type TaskStore, type TaskStoreConfig } from '@whoa/tasks';

const HEARTBEAT_MS = 15_000;
const STREAM = { 'content-type': 'text/event-stream' };
const [what = 'ours', config = '{}', sha256 = ''] = process.argv.slice(2);
const store = createTaskStore(JSON.parse(config) as TaskStoreConfig);
const { port } = await listen(what === 'ours' ? createApi() : createBare(store));
process.on('message', () => {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  process.send?.({ type: 'usage', rss, heapUsed, cpuMs: (user + system) / 1_000 });
});
process.send?.({ type: 'listening', port });

function createApi() {
  const authenticate = createTokens([{ sha256, tenant: 'bench', name: 'bench', rights: OWN_RIGHTS }]);
  const limits = { requestsPerSecond: 1e6, requestsBurst: 1e6, streamsMax: 1e6 };
  return createTaskApi({ store, access: createAccess({ authenticate, limits }) });
}

/** Cancels whatever it is asked to, and opens streams that say nothing but that they are open. */
function createBare(tasks: TaskStore) {
  return {
    async fetch(request: Request): Promise<Response> {
      if (request.method === 'GET') return new Response(createBareStream(), { headers: STREAM });
      const { mode: how } = (await request.json()) as { mode: 'now' };
      const id = new URL(request.url).pathname.split('/')[3]!;
      return Response.json(await tasks.cancel({ tenant: 'bench', id }, {}, { how }));
    },
  };
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
