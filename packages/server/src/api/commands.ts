import { z } from '@hono/zod-openapi';
import type { Json } from '@whoa/core';
import { createReason } from '@whoa/core/embed';
import type { TaskCommand, TaskRef } from '@whoa/tasks';
import type { AuditEvent, Principal } from '../access/principal.ts';
import { reasonBy } from './cancel.ts';
import { askStore } from './http/ask-store.ts';
import { defineEndpoint, type Endpoint } from './http/endpoint.ts';
import { HttpError, unknownTask } from './http/http-error.ts';
import type { ApiParts } from './http/parts.ts';
import { CALL_PARAMS, CANCEL_FIELDS, SEND_RECEIPT, TASK_PARAMS } from './http/schemas.ts';

const MAX_WHY_CHARACTERS = 10_000;
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

export function commandEndpoints(parts: ApiParts): Endpoint[] {
  return [cancelCallEndpoint(parts), approveEndpoint(parts), steerEndpoint(parts)];
}

function cancelCallEndpoint(parts: ApiParts): Endpoint {
  return defineEndpoint({
    method: 'post',
    path: '/v1/tasks/{id}/calls/{callId}/cancel',
    right: 'cancel',
    forOperators: true,
    summary: 'Stops one call; the task continues. The result is in the journal (command-done).',
    params: CALL_PARAMS,
    body: z.strictObject({ reason: CANCEL_FIELDS.reason }),
    responses: RESPONSES,
    handle({ principal, tenant, params: { id, callId }, body }) {
      const reason = createReason(reasonBy(principal, body.reason), parts.world.clock.now());
      const command = { type: 'cancel-call', callId, reason } as const;
      return send({ tenant, id }, command, { parts, principal, type: 'cancel' });
    },
  });
}

function approveEndpoint(parts: ApiParts): Endpoint {
  return defineEndpoint({
    method: 'post',
    path: '/v1/tasks/{id}/calls/{callId}/approve',
    right: 'approve',
    summary: 'Approves or denies a call.',
    params: CALL_PARAMS,
    body: z.strictObject({
      approved: z.boolean(),
      why: z.string().min(1).max(MAX_WHY_CHARACTERS).optional().openapi({
        description: 'If denied: the reason that the model gets.',
      }),
      remember: z.boolean().optional().openapi({
        description: 'Also applies, in this task, to everything that the question lists under always.',
      }),
      asked: z.number().int().min(1).max(Number.MAX_SAFE_INTEGER).openapi({
        description:
          'The position of the approval-question in the journal: who has not seen the question cannot answer.',
      }),
    }),
    responses: RESPONSES,
    async handle({ principal, tenant, params: { id, callId }, body: { approved, why, remember, asked } }) {
      const [entry] = await parts.store.read({ tenant, id }, { after: asked - 1, limit: 1 });
      const isAsked = entry?.position === asked && callAskedAbout(entry.event) === callId;
      if (!isAsked) throw await notAsked(parts, { tenant, id });
      const decision = approved ? true : (why ?? false);
      const command = { type: 'approve', callId, approved: decision, ...(remember && { remember }) } as const;
      return send({ tenant, id }, command, { parts, principal, type: 'approve' });
    },
  });
}

/** Returns the call that a journal entry asks a user about. */
function callAskedAbout(event: Json): string | undefined {
  const { type, question } = event as { type?: string; question?: { callId?: string } };
  return type === 'approval-question' ? question?.callId : undefined;
}

/** Refuses an answer without its question: what was sent before a question does not answer it. */
async function notAsked({ store }: ApiParts, task: TaskRef): Promise<HttpError> {
  if ((await store.get(task)) === undefined) return unknownTask();
  const message = 'asked: the journal has no question about this call at this position; read the question first';
  return new HttpError(409, { code: 'not-asked', message });
}

function steerEndpoint(parts: ApiParts): Endpoint {
  return defineEndpoint({
    method: 'post',
    path: '/v1/tasks/{id}/steer',
    right: 'start',
    summary: 'Sends a message to a running task; its agent reads it at the next boundary.',
    params: TASK_PARAMS,
    body: z.strictObject({ message: MESSAGE }),
    responses: RESPONSES,
    handle: ({ principal, tenant, params: { id }, body: { message } }) =>
      send({ tenant, id }, { type: 'steer', message }, { parts, principal, type: 'steer' }),
  });
}

interface SendContext {
  readonly parts: ApiParts;
  readonly principal: Principal;
  readonly type: AuditEvent['type'];
}

async function send(task: TaskRef, command: TaskCommand, { parts, principal, type }: SendContext): Promise<Response> {
  const { store, access, world } = parts;
  const receipt = await askStore(world, (nonce) => store.send(task, command, { nonce }));
  const { answer } = receipt;
  const about = { tenant: task.tenant, target: task.id, ...('callId' in command && { callId: command.callId }) };
  access.record(principal, { type, ...about, answer });
  if (answer === 'accepted') return Response.json(receipt, { status: 202 });
  if (answer === 'unknown') throw unknownTask();
  if (answer === 'full') {
    throw new HttpError(429, {
      code: 'full',
      message: 'Too many commands are waiting for the worker; try again later',
    });
  }
  const { status } = receipt;
  throw new HttpError(409, {
    code: 'too-late',
    message: `The task no longer accepts commands: it is ${status}`,
    status,
  });
}
