import { isToolUIPart, type UIMessage } from 'ai';

const WAITING: ReadonlySet<string> = new Set(['approval-requested', 'approval-responded', 'input-available']);

/** Returns the questions of a message that wait, by their ids or their calls. */
export function findOpenQuestions({ parts }: UIMessage): readonly string[] {
  return parts.filter(isToolUIPart).flatMap(({ state, toolCallId, approval }) => {
    return WAITING.has(state) ? [approval?.id ?? toolCallId] : [];
  });
}

/** Returns the id of a message that has a call which may wait for a person or for this page. */
export function findWaiting(message: UIMessage | undefined): string | undefined {
  return message?.parts.some((part) => 'state' in part && WAITING.has(part.state ?? '')) ? message.id : undefined;
}
