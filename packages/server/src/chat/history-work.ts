import type { Json } from '@whoa/core';
import type { HeldWork } from '@whoa/tasks';

/** The agent that removes a turn from a chat's history. It runs as a task of the chat, so never beside a reply. */
export const HISTORY_AGENT = 'whoa-chat-history';

/** The user message to cut from. */
interface HistoryCut {
  readonly from: string;
}

interface Said {
  readonly role?: string;
  readonly id?: string;
}

/** Cuts a history before a user message. An unknown message cuts nothing. */
export function createHistoryWork(): HeldWork {
  return {
    hold: ({ task, history }) => {
      const { from } = task.inputs.at(-1) as unknown as HistoryCut;
      const index = (history as readonly Said[]).findLastIndex(({ role, id }) => role === 'user' && id === from);
      const kept: readonly Json[] = index < 0 ? history : history.slice(0, index);
      return Promise.resolve({ status: 'success', history: kept, result: { removed: history.length - kept.length } });
    },
  };
}
