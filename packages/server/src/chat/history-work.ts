import type { CancelReason, Json } from '@whoa/core';
import type { HeldWork } from '@whoa/tasks';
import type { UIMessage } from 'ai';
import { closeWaiting, type LateEnd, withLateEnd } from './answers.ts';
import { asJson, type IsElsewhere } from './ui/call-parts.ts';

/** The agent that changes a chat's history. It runs as a task of the chat, so never beside a reply. */
export const HISTORY_AGENT = 'whoa-chat-history';

/** A change of a history. */
type HistoryChange =
  /** Cuts it before a user message. */
  | { readonly from: string }
  /** Closes the calls of a message that wait, if it is the last one. */
  | { readonly close: string; readonly why: CancelReason }
  /** Says how a call ended that was given up. */
  | LateEnd;

interface Said {
  readonly role?: string;
  readonly id?: string;
}

/** Changes a history. An unknown message changes nothing. */
export function createHistoryWork(isElsewhere: IsElsewhere): HeldWork {
  return {
    hold: ({ task, history }) => {
      const change = task.inputs.at(-1) as unknown as HistoryChange;
      const messages = history as unknown as readonly UIMessage[];
      if ('late' in change)
        return Promise.resolve({ status: 'success', history: asJson(withLateEnd(messages, change)) as Json[] });
      if ('close' in change) {
        const closed =
          messages.at(-1)?.id === change.close ? closeWaiting(messages, change.why, isElsewhere) : messages;
        return Promise.resolve({ status: 'success', history: asJson(closed) as Json[] });
      }
      const index = (history as readonly Said[]).findLastIndex(({ role, id }) => role === 'user' && id === change.from);
      const kept: readonly Json[] = index < 0 ? history : history.slice(0, index);
      return Promise.resolve({ status: 'success', history: kept, result: { removed: history.length - kept.length } });
    },
  };
}
