import type { TaskStore, TaskSummary } from '@whoa/tasks';
import type { UIDataTypes, UIMessage, UIMessagePart, UITools } from 'ai';
import { findAnswers } from './answers.ts';

/** How many of a chat's last tasks are read. Reports of older ones are not shown again. */
const MAX_TASKS = 50;

const REPORT = 'data-stop-report';

/** Adds the stop report to each stopped reply, as it was streamed at its end. */
export async function withStopReports(
  messages: readonly UIMessage[],
  store: TaskStore,
  chat: { readonly tenant: string; readonly conversation: string },
): Promise<readonly UIMessage[]> {
  const { tasks } = await store.list({ ...chat, limit: MAX_TASKS });
  const answers = await readReplyTasks(tasks.slice(0, tasks.findLastIndex(isReported) + 1), store);
  const reportFor = (id = ''): Part | undefined => {
    const task = answers.get(id);
    return task !== undefined && isReported(task) ? reportPart(task) : undefined;
  };
  return messages.flatMap((message, index): UIMessage[] => {
    const own = message.role === 'assistant' && (reportFor(message.id) ?? reportFor(messages[index - 1]?.id));
    if (own) return [withReport(message, own)];
    // It was stopped before it produced any output.
    const lone = messages[index + 1]?.role === 'assistant' ? undefined : reportFor(message.id);
    return lone === undefined ? [message] : [message, { id: lone.id, role: 'assistant', parts: [lone] }];
  });
}

type Part = Extract<UIMessagePart<UIDataTypes, UITools>, { type: `data-${string}` }> & { readonly id: string };

/** Returns the last task that replied to each message, or continued it; a message may have several replies. */
async function readReplyTasks(
  newestFirst: readonly TaskSummary[],
  store: TaskStore,
): Promise<Map<string, TaskSummary>> {
  const records = await Promise.all(newestFirst.map((task) => store.get(task)));
  const answers = new Map<string, TaskSummary>();
  for (const [index, task] of newestFirst.entries()) {
    const { inputs = [] } = records[index] ?? {};
    const { id = findAnswers({ inputs })?.messageId } = (inputs.at(-1) ?? {}) as { id?: string };
    if (id !== undefined && !answers.has(id)) answers.set(id, task);
  }
  return answers;
}

function isReported({ status, outcome }: TaskSummary): boolean {
  return status === 'cancelled' && outcome?.stopReport !== undefined;
}

/** Adds a report to its message, once. */
export function withReport(message: UIMessage, report: Part): UIMessage {
  const isThere = message.parts.some(({ type }) => type === REPORT);
  return isThere ? message : { ...message, parts: [...message.parts, report] };
}

export function reportPart({ id, outcome }: Pick<TaskSummary, 'id' | 'outcome'>): Part {
  return { type: REPORT, id: `${id}-stop`, data: outcome?.stopReport };
}
