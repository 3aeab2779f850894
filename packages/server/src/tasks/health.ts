import { z } from '@hono/zod-openapi';
import type { Clock } from '@whoa/core/embed';
import { waitAtMost } from '@whoa/core/internal';
import type { TaskStore } from '@whoa/tasks';
import { refuse } from '../http/access/refusal.ts';
import { type ApiParts, defineEndpoint, type Endpoint } from '../http/endpoint.ts';

/** A store that takes longer to respond is not ready. */
const READY_MS = 2_000;
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const OK = z.object({ ok: z.literal(true) });

export function healthEndpoints({ store, world, isDraining = () => false }: ApiParts): Endpoint[] {
  const isReady = createReadiness(store, world.clock);
  return [
    defineEndpoint({
      method: 'get',
      path: '/healthz',
      right: 'public',
      summary: 'Whether the process responds.',
      responses: { 200: { description: 'Yes.', schema: OK } },
      handle: () => Response.json({ ok: true }),
    }),
    defineEndpoint({
      method: 'get',
      path: '/readyz',
      right: 'public',
      summary: 'Whether the store responds in time, and the server is not shutting down.',
      responses: { 200: { description: 'Yes.', schema: OK }, 503: { description: 'No.' } },
      async handle() {
        const isLeaving = isDraining();
        if (!isLeaving && (await isReady())) return Response.json({ ok: true });
        const reason = isLeaving ? 'The server is shutting down' : 'The store did not respond';
        return refuse(503, { code: 'not-ready', message: `${reason}; send requests to another instance for now` });
      },
    }),
  ];
}

export const METRICS_ENDPOINT: Endpoint = defineEndpoint({
  method: 'get',
  path: '/metrics',
  // The numbers are those of this process, over all tenants, so only operators may see them.
  right: 'operate',
  summary: 'The metrics of this process, as Prometheus reads them.',
  responses: { 200: { description: 'The text format of Prometheus, version 0.0.4.' } },
  handle: async (_asked, { metrics }) => new Response(await metrics!(), { headers: { 'content-type': METRICS_TYPE } }),
});

/** Sends a cheap request to the store. One at a time, no matter how many callers want to know. */
function createReadiness(store: TaskStore, clock: Clock): () => Promise<boolean> {
  let asking: Promise<boolean> | undefined;
  const ask = async (): Promise<boolean> => {
    let isReady = false;
    const answer = store.get({ tenant: 'readyz', id: 't-readyz' }).then(() => (isReady = true));
    await waitAtMost(answer, READY_MS, clock).catch(() => {});
    return isReady;
  };
  return () => {
    asking ??= ask().finally(() => (asking = undefined));
    return asking;
  };
}
