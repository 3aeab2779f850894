import type { CallToolResult } from '@modelcontextprotocol/client';
import { CancellationToken } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';
import { rankLevel } from '@whoa/core/internal';
import type { McpConnection, ServerCall } from './connection.ts';
import { followTask, TaskFailedError, type TaskRequests } from './follow-task.ts';
import { readPlainForm } from './form.ts';
import { LostAnswerError } from './lost-answer.ts';
import { loadClient } from './open-connection.ts';
import { type AskingTask, acknowledgement, type InputRequest, parseTask, serverTask } from './server-task.ts';

/** A question that a task of a server asks. */
interface McpQuestion {
  readonly server: string;
  readonly tool: string;
  /** With every field of its form, and what a yes sends in it. */
  readonly message: string;
}

/** Answers a question of a server with yes or no. */
export type McpApprove = (
  question: McpQuestion,
  context: { readonly signal: AbortSignal },
) => boolean | Promise<boolean>;

interface CallOptions {
  readonly approve: McpApprove | undefined;
  readonly onStatus: (message: string) => void;
}

const ASK_MS = 30_000;
/** How long a server may take to accept a cancel. */
const CANCEL_MS = 2_000;
/** How often an answer is sent that the server does not take. */
const MAX_UPDATES = 3;
/** The JSON-RPC error for a task that the server does not know. */
const INVALID_PARAMS = -32_602;

/** Calls a tool, and follows the task if the call became one. */
export async function callOrFollow(
  connection: McpConnection,
  call: ServerCall,
  options: CallOptions,
): Promise<CallToolResult> {
  const result = await connection.call(call);
  const created = parseTask(result);
  if (created === undefined) return result;
  const { name, clock, closing } = connection;
  if (created === 'invalid')
    throw new LostAnswerError(`The MCP server '${name}' started a task that cannot be followed`);
  const requests = await createTaskRequests(connection, { taskId: created.taskId, call, ...options });
  return followTask(created, requests, { name, clock, closing, token: call.token, onStatus: options.onStatus });
}

interface TaskOfCall extends CallOptions {
  readonly taskId: string;
  readonly call: ServerCall;
}

async function createTaskRequests(connection: McpConnection, task: TaskOfCall): Promise<TaskRequests> {
  const { ProtocolError, specTypeSchemas } = await loadClient();
  const { taskId, call } = task;
  const answers = new Map<string, unknown>();
  const sent = new Set<string>();
  let failures = 0;
  return {
    async get(until) {
      const request = { method: 'tasks/get', params: { taskId }, schema: serverTask };
      const found = await within(ASK_MS, { connection, token: call.token, until }, (token) =>
        connection.request(request, token),
      );
      if (found.taskId !== taskId)
        throw new LostAnswerError(`The MCP server '${connection.name}' reported another task`);
      return found;
    },
    async cancel() {
      const request = { method: 'tasks/cancel', params: { taskId }, schema: acknowledgement };
      await within(CANCEL_MS, { connection }, (token) => connection.request(request, token));
    },
    async answer(asking) {
      const isAnswered = await answerAll(asking, { ...task, connection, answers });
      const fresh = Object.keys(asking.inputRequests).filter((key) => !sent.has(key));
      if (!isAnswered || fresh.length === 0) return;
      const inputResponses = Object.fromEntries(fresh.map((key) => [key, answers.get(key)]));
      const request = { method: 'tasks/update', params: { taskId, inputResponses }, schema: acknowledgement };
      try {
        await within(ASK_MS, { connection, token: call.token, until: 'drain' }, (token) =>
          connection.request(request, token),
        );
        for (const key of fresh) sent.add(key);
      } catch (error) {
        if (call.token.isCancelled || ++failures < MAX_UPDATES) return;
        throw new LostAnswerError(`The MCP server '${connection.name}' did not accept the answer to its question`, {
          cause: error,
        });
      }
    },
    canRetry: (error) =>
      connection.keepsTasks && !(ProtocolError.isInstance(error) && (error.code as number) === INVALID_PARAMS),
    parseResult(result) {
      const parsed = specTypeSchemas.CallToolResult['~standard'].validate(result);
      if (parsed.issues === undefined) return parsed.value as CallToolResult;
      throw new LostAnswerError(`The MCP server '${connection.name}' sent an invalid response for its task`);
    },
  };
}

interface Answering extends TaskOfCall {
  readonly connection: McpConnection;
  readonly answers: Map<string, unknown>;
}

/** Asks the user what a task asks, once. Returns false if the call was cancelled meanwhile. */
async function answerAll({ inputRequests }: AskingTask, answering: Answering): Promise<boolean> {
  const { connection, answers, approve, call } = answering;
  for (const [key, request] of Object.entries(inputRequests)) {
    if (answers.has(key)) continue;
    const found = findQuestion(request);
    if (found === undefined || approve === undefined) {
      const words = `The MCP server '${connection.name}' asks for input (${found?.message ?? request.method})`;
      const help =
        approve === undefined ? 'pass approve to createMcpTools' : 'only yes or no questions can be answered';
      throw new TaskFailedError(`${words}, so its task was cancelled; ${help}`);
    }
    const stop = new AbortController();
    const question = { server: connection.name, tool: call.name, message: found.message };
    const asked = Promise.resolve().then(() => approve(question, { signal: stop.signal }));
    const answer = await waitUntilLevel(asked, call.token, 'drain');
    if (answer.by === 'error') throw answer.error;
    if (answer.by === 'level') {
      stop.abort('cancelled');
      return false;
    }
    answers.set(key, answer.value === true ? { action: 'accept', content: found.content } : { action: 'decline' });
  }
  return true;
}

/** A question that yes or no answers, with every field that a yes sends. */
function findQuestion({ method, params = {} }: InputRequest): { message: string; content: object } | undefined {
  const { message, mode = 'form', requestedSchema } = params;
  const form = method === 'elicitation/create' && mode === 'form' ? readPlainForm(requestedSchema) : undefined;
  if (form === undefined || typeof message !== 'string') return undefined;
  const fields = form.fields === '' ? '' : `\n\nYes sends this form:\n${form.fields}`;
  return { message: message + fields, content: form.content };
}

interface Limits {
  readonly connection: McpConnection;
  readonly token?: CancellationToken;
  readonly until?: 'drain' | 'kill';
}

/** Runs a request that ends after `ms`, or when the token reaches the level. */
async function within<T>(
  ms: number,
  { connection: { clock }, token, until = 'kill' }: Limits,
  run: (token: CancellationToken) => Promise<T>,
): Promise<T> {
  const own = new CancellationToken({ name: 'a request about an MCP task', clock });
  const timer = clock.setTimer(ms, () => own.cancel({ kind: 'deadline' }, { mode: 'now' }));
  const subscription = token?.onCancel((level, { kind }) => {
    if (rankLevel(level) >= rankLevel(until)) own.cancel({ kind }, { mode: 'now' });
  });
  try {
    return await run(own);
  } finally {
    timer[Symbol.dispose]();
    subscription?.[Symbol.dispose]();
    own[Symbol.dispose]();
  }
}
