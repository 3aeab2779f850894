// Approval questions of a task, asked and answered through its MCP host.
import type { InputRequests } from '@modelcontextprotocol/server';
import { type ApprovalAnswer, type ApprovalQuestion, describeLocation, formatQuestion } from '@whoa/core/approval';
import type { TaskRecord, TaskStore } from '@whoa/tasks';
import { type PendingQuestion, PendingQuestions } from '@whoa/tasks/internal';
import { z } from 'zod';

/** What `always` covers when it covers nothing else. */
const THIS_CALL_ONLY = 'this call only';
const DISMISSED = 'the user dismissed the question';

/** Reads the questions that wait for an answer now. */
export async function readQuestions(store: TaskStore, task: TaskRecord): Promise<readonly PendingQuestion[]> {
  const { status, questions = [] } = task;
  const open = new Set(
    questions.filter(({ answer, closed }) => answer === undefined && closed === undefined).map(({ id }) => id),
  );
  if (status !== 'running' || open.size === 0) return [];
  const pending = new PendingQuestions();
  for (let after: number | undefined = 0; after !== undefined; ) {
    const entries = await store.read(task, { after });
    for (const entry of entries) pending.note(entry);
    after = entries.at(-1)?.position;
  }
  return pending.list.filter(({ id }) => open.has(id));
}

/** Converts questions to the requests of a task. Their keys are random: who has not read a question cannot answer it. */
export function toInputRequests(questions: readonly PendingQuestion[]): InputRequests {
  return Object.fromEntries(
    questions.map(({ id, question }) => {
      const params = { mode: 'form' as const, message: messageOf(question), requestedSchema: schemaOf(question) };
      return [id, { method: 'elicitation/create' as const, params }];
    }),
  );
}

/** Everything that would run, because a host shows its user nothing else. */
function messageOf(question: ApprovalQuestion): string {
  const { tool, effects, why } = question;
  const where = describeLocation(question);
  const title = `${tool} wants to ${effects}${where === undefined ? '' : ` ${where}`}:`;
  const lines = formatQuestion(question).map((line) => `  ${line}`);
  return [title, ...lines, ...(why === undefined ? [] : [`Asked because ${why}`]), 'Allow it?'].join('\n');
}

function schemaOf({ alwaysScope }: ApprovalQuestion) {
  const remember = {
    type: 'boolean' as const,
    title: 'Always',
    description: `Also allow ${alwaysScope}`,
    default: false,
  };
  const properties: Record<string, typeof remember> = alwaysScope === THIS_CALL_ONLY ? {} : { remember };
  return { type: 'object' as const, properties };
}

const ANSWER = z.discriminatedUnion('action', [
  z.object({ action: z.literal('accept'), content: z.object({ remember: z.boolean().optional() }).optional() }),
  z.object({ action: z.enum(['decline', 'cancel']) }),
]);

/** Reads a host's response to a question. Returns `undefined` if it is none. */
export function readAnswer(response: unknown): ApprovalAnswer | undefined {
  const { data } = ANSWER.safeParse(response);
  if (data === undefined) return undefined;
  if (data.action === 'accept') return { decision: data.content?.remember === true ? 'always' : 'yes' };
  return { decision: 'no', ...(data.action === 'cancel' && { why: DISMISSED }) };
}
