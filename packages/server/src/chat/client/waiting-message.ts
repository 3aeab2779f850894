import type { UIMessage } from 'ai';
import { isCallPart } from '../ui/call-parts.ts';

const WAITING: ReadonlySet<string> = new Set(['approval-requested', 'approval-responded', 'input-available']);

/** Whether a part is a call that a person or the page has not answered. */
export function isOpen(part: UIMessage['parts'][number]): boolean {
  return isCallPart(part) && (part.state === 'approval-requested' || part.state === 'input-available');
}

/** Returns the questions of a message that wait, by their ids or their calls. */
export function findOpenQuestions(message: UIMessage | undefined): readonly string[] {
  const open = message?.parts.filter(isCallPart).filter(isOpen) ?? [];
  return open.map(({ toolCallId, approval }) => approval?.id ?? toolCallId);
}

/** Returns what a page says about the calls of a message, by question or call. */
export function findAnswered({ id, parts }: UIMessage): readonly string[] {
  return parts.filter(isCallPart).flatMap(({ state, toolCallId, approval }) => {
    if (state === 'approval-responded') return [`${id} ${approval.id}`];
    return state === 'output-available' || state === 'output-error' ? [`${id} ${toolCallId}`] : [];
  });
}

/** Returns the id of a message that has a call which may wait for a person or for this page. */
export function findWaiting(message: UIMessage | undefined): string | undefined {
  return message?.parts.some((part) => 'state' in part && WAITING.has(part.state ?? '')) ? message.id : undefined;
}
