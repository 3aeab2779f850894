import { z } from '@hono/zod-openapi';
import { createReason } from '@whoa/core/embed';
import type { TaskCommand, TaskRef } from '@whoa/tasks';
import type { AuditEvent, Principal } from '../http/access/principal.ts';
import { type ApiParts, defineEndpoint, type Endpoint } from '../http/endpoint.ts';
import { HttpError, unknownTask } from '../http/http-error.ts';
import { COUNT, NAME, TASK_PARAMS } from '../http/schemas.ts';
import { withStoreRetry } from '../http/with-store-retry.ts';
import { refuseMessage } from './answering.ts';
import { REASON_TEXT, toReason } from './cancel.ts';

const SEND_RECEIPT = z
  .object({ result: z.literal('accepted'), number: COUNT })
  .openapi('SendReceipt', { description: 'Stored for the worker, which carries it out next.' });

const RESPONSES = {
  202: { description: 'It is stored for the worker.', schema: SEND_RECEIPT },
  409: { description: 'The task is being cancelled or has ended; error.status says which.' },
};

const PART = z.union([
  z.strictObject({ type: z.literal('text'), text: z.string() }),
  z.strictObject({ type: z.literal('image'), mediaType: z.string().max(200), data: z.base64() }),
]);
const MESSAGE = z.union([
  z.string().min(1),
  z.strictObject({ role: z.literal('user'), content: z.union([z.string().min(1), z.array(PART).min(1)]) }),
]);

export const COMMAND_ENDPOINTS: readonly Endpoint[] = [
  defineEndpoint({
    method: 'post',
    path: '/v1/tasks/{id}/calls/{callId}/cancel',
    right: 'cancel',
    forOperators: true,
    summary: 'Stops one call; the task continues. The result is in the journal (command-handled).',
    params: TASK_PARAMS.extend({ callId: NAME }),
    body: z.strictObject({ reason: REASON_TEXT }),
    responses: RESPONSES,
    handle({ principal, tenant, params: { id, callId }, body, request }, parts) {
      const reason = createReason(toReason(principal, body.reason, request), parts.world.clock.now());
      const command = { type: 'cancel-call', callId, reason } as const;
      return send({ tenant, id }, command, { parts, principal, type: 'cancel' });
    },
  }),
  defineEndpoint({
    method: 'post',
    path: '/v1/tasks/{id}/steer',
    right: 'start',
    summary:
      'Sends a message to a running task; its agent reads it at the next boundary. Open questions are withdrawn.',
    params: TASK_PARAMS,
    body: z.strictObject({ message: MESSAGE }),
    responses: { ...RESPONSES, 403: { description: 'You lack the right, or may not answer an open question.' } },
    async handle({ principal, tenant, params: { id }, body: { message } }, parts) {
      const refused = await refuseMessage(principal, { tenant, id }, parts);
      if (refused !== undefined) throw new HttpError(403, refused);
      return send({ tenant, id }, { type: 'steer', message }, { parts, principal, type: 'steer' });
    },
  }),
];

interface SendContext {
  readonly parts: ApiParts;
  readonly principal: Principal;
  readonly type: AuditEvent['type'];
}

async function send(task: TaskRef, command: TaskCommand, { parts, principal, type }: SendContext): Promise<Response> {
  const { store, access, world } = parts;
  const receipt = await withStoreRetry(world, (nonce) => store.send(task, command, { nonce }));
  const { result } = receipt;
  const about = { tenant: task.tenant, target: task.id, ...('callId' in command && { callId: command.callId }) };
  access.audit(principal, { type, ...about, result });
  if (result === 'accepted') return Response.json(receipt, { status: 202 });
  if (result === 'not-found') throw unknownTask();
  if (result === 'full') {
    const message = 'Too many commands are waiting for the worker; try again later';
    throw new HttpError(429, { code: 'full', message });
  }
  const { status } = receipt;
  const message = `The task no longer accepts commands: it is ${status}`;
  throw new HttpError(409, { code: 'too-late', message, status });
}
