import type { CancelReason, Json } from '@whoa/core';
import type { SelfManagedWork, TaskOutcome } from '@whoa/tasks';
import type { UIMessage } from 'ai';
import { closeWaiting, type LateResult, withLateEnd } from './answers.ts';
import { asJson, type IsElsewhere } from './ui/call-parts.ts';

/** The agent that changes a chat's history. It runs as a task of the chat, so never during a reply. */
export const HISTORY_AGENT = 'whoa-chat-history';

/** A change of a history. */
type HistoryChange =
  /** Cuts it before a user message. */
  | { readonly from: string }
  /** Closes the calls of a message that wait, if it is the last one. */
  | { readonly close: string; readonly why: CancelReason }
  /** Says how a call ended that was given up. */
  | LateResult;

/** Changes a history. An unknown message changes nothing. */
export function createHistoryWork(isElsewhere: IsElsewhere): SelfManagedWork {
  return {
    runTask: ({ task, history }) => {
      const change = task.inputs.at(-1) as unknown as HistoryChange;
      const messages = history as unknown as readonly UIMessage[];
      if ('late' in change) return changed(withLateEnd(messages, change));
      if ('close' in change)
        return changed(
          messages.at(-1)?.id === change.close ? closeWaiting(messages, change.why, isElsewhere) : messages,
        );
      const index = messages.findLastIndex(({ role, id }) => role === 'user' && id === change.from);
      return changed(index < 0 ? messages : messages.slice(0, index));
    },
  };
}

/** `done` tells that it ran: a newer message may have cancelled its task only then. */
function changed(messages: readonly UIMessage[]): Promise<TaskOutcome> {
  return Promise.resolve({ status: 'success', history: asJson(messages) as Json[], result: { done: true } });
}
