// Approval questions of a task, asked and answered through its MCP host.
import type { InputRequests } from '@modelcontextprotocol/server';
import { type ApprovalQuestion, describeLocation, formatQuestion } from '@whoa/core/approval';
import type { TaskCommand, TaskRecord, TaskStore } from '@whoa/tasks';
import { type PendingQuestion, PendingQuestions } from '@whoa/tasks/internal';
import { z } from 'zod';

/** What `always` covers when it covers nothing else. */
const THIS_CALL_ONLY = 'this call only';
const DISMISSED = 'the user dismissed the question';

/** Reads the questions that wait for an answer now: asked by the current worker, and not answered by anyone. */
export async function readQuestions(store: TaskStore, task: TaskRecord): Promise<readonly PendingQuestion[]> {
  const { status, activity, epoch, commands } = task;
  if (status !== 'running' || activity === undefined || activity.questions === 0) return [];
  const pending = new PendingQuestions();
  for (let after: number | undefined = 0; after !== undefined; ) {
    const entries = await store.read(task, { after });
    // The questions of a lost worker died with it.
    for (const entry of entries) if (entry.epoch === epoch) pending.note(entry);
    after = entries.at(-1)?.position;
  }
  const isAnswered = (callId: string): boolean =>
    commands.some((command) => command.type === 'approve' && command.callId === callId);
  return pending.list.slice(-activity.questions).filter(({ question }) => !isAnswered(question.callId));
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

function schemaOf({ always }: ApprovalQuestion) {
  const remember = { type: 'boolean' as const, title: 'Always', description: `Also allow ${always}`, default: false };
  const properties: Record<string, typeof remember> = always === THIS_CALL_ONLY ? {} : { remember };
  return { type: 'object' as const, properties };
}

const ANSWER = z.discriminatedUnion('action', [
  z.object({ action: z.literal('accept'), content: z.object({ remember: z.boolean().optional() }).optional() }),
  z.object({ action: z.enum(['decline', 'cancel']) }),
]);

type ApproveCommand = Extract<TaskCommand, { type: 'approve' }>;

/** Reads a host's response to a question. Returns `undefined` if it is none. */
export function readAnswer({ question }: PendingQuestion, response: unknown): ApproveCommand | undefined {
  const { data } = ANSWER.safeParse(response);
  if (data === undefined) return undefined;
  const about = { type: 'approve', callId: question.callId } as const;
  if (data.action === 'accept')
    return { ...about, approved: true, ...(data.content?.remember === true && { remember: true }) };
  return { ...about, approved: data.action === 'cancel' ? DISMISSED : false };
}
