import { z } from '@hono/zod-openapi';
import { type FollowEvent, followTask } from '@whoa/tasks';
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts';
import { HttpError, unknownTask } from '../http/http-error.ts';
import { TASK_PARAMS } from '../http/schemas.ts';
import { streamEvents } from '../http/sse.ts';

/** The id of the last event: a client that reconnects with it has seen everything. */
const END_ID = 'end';

const POSITION = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

export const EVENTS_ENDPOINT: Endpoint = defineEndpoint({
  method: 'get',
  path: '/v1/tasks/{id}/events',
  right: 'read',
  forOperators: true,
  summary:
    'Streams the journal (text/event-stream), then one `end` event with the task. A reader that disconnects stops nothing.',
  params: TASK_PARAMS,
  query: z.object({
    after: POSITION.optional().openapi({ description: 'Start after this position; Last-Event-ID takes precedence.' }),
  }),
  responses: {
    200: {
      description: '`entry` events, whose id is their position, then `end`. Comments keep the connection open.',
    },
    204: { description: 'You have read the end; nothing follows.' },
  },
  async handle({ principal, tenant, params: { id }, query, request }, { store, access, world, onError }) {
    const last = request.headers.get('last-event-id');
    const after = last === null || last === '' ? (query.after ?? 0) : parsePosition(last);
    const ref = { tenant, id };
    if ((await store.get(ref)) === undefined) throw unknownTask();
    if (last === END_ID) return new Response(null, { status: 204 });
    const follow = () => followTask(store, ref, { after, world, onStoreError: onError });
    return streamEvents({ request, who: principal }, follow, { access, clock: world.clock, toText });
  },
});

function toText(seen: FollowEvent): string {
  const id = seen.type === 'end' ? END_ID : seen.position;
  return `id: ${id}\nevent: ${seen.type}\ndata: ${JSON.stringify(seen)}\n\n`;
}

function parsePosition(last: string): number {
  if (last === END_ID) return 0;
  const position = POSITION.safeParse(last);
  if (position.success) return position.data;
  throw new HttpError(400, { code: 'invalid', message: 'Last-Event-ID: expected the id of an event of this stream' });
}
