import { z } from '@hono/zod-openapi';
import { type FollowEvent, followTask } from '@whoa/tasks';
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts';
import { HttpError, unknownTask } from '../http/http-error.ts';
import { TASK_PARAMS } from '../http/schemas.ts';
import { streamEvents } from '../http/sse.ts';

/** The id of the last event: a client that reconnects with it has seen everything. */
const END_ID = 'end';

/** The id of an event, or a position. */
const CURSOR = z.string().regex(/^\d{1,16}(\.[0-9a-f]*\.\d{1,15}\.[0-9a-f]*\.\d{1,15})?$/);

export const EVENTS_ENDPOINT: Endpoint = defineEndpoint({
  method: 'get',
  path: '/v1/tasks/{id}/events',
  right: 'read',
  forOperators: true,
  summary:
    'Streams the journal (text/event-stream), then one `end` event with the task. A reader that disconnects stops nothing.',
  params: TASK_PARAMS,
  query: z.object({
    after: CURSOR.optional().openapi({
      description: 'Start after this position, or after the event with this id; Last-Event-ID takes precedence.',
    }),
  }),
  responses: {
    200: {
      description:
        '`entry` events, then `end`. `isDraft`: the journal does not have it yet; `taken-back`: drafts behind a position are lost. Comments keep the connection open.',
    },
    204: { description: 'You have read the end; nothing follows.' },
  },
  async handle({ principal, tenant, params: { id }, query, request }, { store, access, world, onError }) {
    const last = request.headers.get('last-event-id');
    const after = last === null || last === '' ? (query.after ?? '0') : parseId(last);
    const ref = { tenant, id };
    if ((await store.get(ref)) === undefined) throw unknownTask();
    if (last === END_ID) return new Response(null, { status: 204 });
    const follow = () => followTask(store, ref, { after, world, onStoreError: onError });
    return streamEvents({ request, who: principal }, follow, { access, clock: world.clock, toText });
  },
});

function toText(seen: FollowEvent): string {
  const id = seen.type === 'end' ? END_ID : seen.cursor;
  return `id: ${id}\nevent: ${seen.type}\ndata: ${JSON.stringify(seen)}\n\n`;
}

function parseId(last: string): string {
  if (last === END_ID) return '0';
  const cursor = CURSOR.safeParse(last);
  if (cursor.success) return cursor.data;
  throw new HttpError(400, { code: 'invalid', message: 'Last-Event-ID: expected the id of an event of this stream' });
}
