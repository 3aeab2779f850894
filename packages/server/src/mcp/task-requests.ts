// The requests about tasks: `tasks/get`, `tasks/cancel` and `tasks/update`.
import type { McpServer, Result, ServerContext } from '@modelcontextprotocol/server';
import type { CancelReasonInit } from '@whoa/core';
import { systemWorld } from '@whoa/core/embed';
import type { TaskRef, TaskStore } from '@whoa/tasks';
import { z } from 'zod';
import { may } from '../http/access/access.ts';
import { HttpError } from '../http/http-error.ts';
import { withStoreRetry } from '../http/with-store-retry.ts';
import { answerFor } from '../tasks/answering.ts';
import { readOpenQuestions } from '../tasks/read-questions.ts';
import { findAbilities, type McpCaller, TASKS_EXTENSION } from './host.ts';
import { readAnswer } from './task-questions.ts';
import { describeTask } from './task-state.ts';

type ServerLibrary = typeof import('@modelcontextprotocol/server');

export const INVALID_PARAMS = -32_602;
export const INTERNAL = -32_603;
const MISSING = { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } };
const OF_TASK = z.looseObject({ taskId: z.string().min(1) });

interface TaskRequestParts {
  readonly library: ServerLibrary;
  readonly store: TaskStore;
  readonly caller: McpCaller;
}

/** Adds the requests about tasks to a server. */
export function serveTaskRequests({ server }: McpServer, { library, store, caller }: TaskRequestParts): void {
  const { ProtocolError, MissingRequiredClientCapabilityError } = library;
  const { principal, access } = caller;
  const mayApprove = may(principal, 'approve');
  const ofTask = (method: string, answer: (ref: TaskRef, context: ServerContext) => Promise<Result | undefined>) => {
    server.setRequestHandler(method, { params: OF_TASK }, async ({ taskId }, context) => {
      if (!findAbilities(context).hasTasks) throw new MissingRequiredClientCapabilityError(MISSING);
      const found = await answer({ tenant: principal.tenant, id: taskId }, context);
      if (found === undefined) throw new ProtocolError(INVALID_PARAMS, 'There is no such task');
      return found;
    });
  };
  ofTask('tasks/get', (ref, context) =>
    describeTask(store, ref, { canAnswer: mayApprove && findAbilities(context).canAsk }),
  );
  ofTask('tasks/cancel', async (ref) => {
    const answer = await cancelFor(caller, { store, ref });
    return answer === 'not-found' ? undefined : {};
  });
  ofTask('tasks/update', async (ref, context) => {
    const { inputResponses } = context.mcpReq;
    if (inputResponses === undefined) throw new ProtocolError(INVALID_PARAMS, 'inputResponses: expected an object');
    const task = await store.get(ref);
    if (task === undefined) return undefined;
    if (!mayApprove || !findAbilities(context).canAsk)
      throw new ProtocolError(
        INVALID_PARAMS,
        'This task has no question for this host; answer its questions in the console',
      );
    // What answers no question that waits now is ignored: it arrived too late, twice or before the question.
    const answers = (await readOpenQuestions(store, task)).flatMap((asked) => {
      if (!Object.hasOwn(inputResponses, asked.id)) return [];
      const value = readAnswer(asked, inputResponses[asked.id]);
      if (value !== undefined) return [{ id: asked.id, value: { ...value } }];
      throw new ProtocolError(INVALID_PARAMS, `inputResponses.${asked.id}: expected an answer to the question`);
    });
    for (const { id, value } of answers) {
      const answered = answerFor(principal, { tenant: ref.tenant, id, value }, { store, access, world: systemWorld });
      await answered.catch((error: unknown) => {
        throw error instanceof HttpError ? new ProtocolError(INVALID_PARAMS, error.message) : error;
      });
    }
    return {};
  });
}

/** Cancels a task for a caller, and returns what the store answered. */
export async function cancelFor(
  caller: McpCaller,
  { store, ref, message }: { readonly store: TaskStore; readonly ref: TaskRef; readonly message?: string },
): Promise<string> {
  const { principal, access } = caller;
  const reason: CancelReasonInit = { kind: 'user', by: principal.name, via: 'mcp', ...(message && { message }) };
  // The protocol has no levels, and its hosts expect a cancel to stop what runs.
  const { result } = await withStoreRetry(systemWorld, () => store.cancel(ref, reason, { mode: 'now' }));
  access.audit(principal, { type: 'cancel', tenant: ref.tenant, target: ref.id, result });
  return result;
}
