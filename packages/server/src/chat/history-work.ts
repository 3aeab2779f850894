import type { CancelReason, Json, Message } from '@whoa/core';
import type { SelfManagedWork, TaskOutcome, TaskRecord } from '@whoa/tasks';
import type { UIMessage } from 'ai';
import { closeWaiting, type LateResult, withLateEnd } from './answers.ts';
import { findReplacedCalls, type ReplacedCall, toNotice, withReplacedCalls } from './replaced-calls.ts';
import { asJson, type IsElsewhere } from './ui/call-parts.ts';
import { toUiMessages } from './ui/ui-messages.ts';

/** The agent that changes a chat's history. It runs as a task of the chat, so never during a reply. */
export const HISTORY_AGENT = 'whoa-chat-history';

/** A change of a history. */
export type HistoryChange =
  /** Adds a user message that has no reply; one that is replied to again first cuts what comes after it. */
  | { readonly add: UIMessage; readonly regenerate: boolean }
  /**
   * Removes a user message, and everything after it. `keepsEffects`: a note of the calls stays in its place. `turn`: the
   * messages to which its reply is; if others came later, nothing is removed.
   */
  | { readonly from: string; readonly keepsEffects?: boolean; readonly turn?: readonly string[] }
  /** Closes the calls of a message that wait, if it is the last one. */
  | { readonly close: string; readonly why: CancelReason }
  /** Says how a call ended that was given up. */
  | LateResult;

interface HistoryWorkOptions {
  readonly isElsewhere: IsElsewhere;
  /** Its messages are those of a page. */
  readonly isReply: boolean;
  /** The names of the tools that only read. */
  readonly readOnlyTools: ReadonlySet<string>;
}

/** Changes a history. An unknown message changes nothing. */
export function createHistoryWork({ isElsewhere, isReply, readOnlyTools }: HistoryWorkOptions): SelfManagedWork {
  return {
    runTask: ({ task, history }) => {
      const change = task.inputs.at(-1) as unknown as HistoryChange;
      const messages = history as unknown as readonly UIMessage[];
      if ('add' in change) return changed(withAdded(messages, change));
      if ('late' in change) return changed(withLateEnd(messages, change));
      if ('close' in change)
        return changed(
          messages.at(-1)?.id === change.close ? closeWaiting(messages, change.why, isElsewhere) : messages,
        );
      const index = messages.findLastIndex(({ role, id }) => role === 'user' && id === change.from);
      // A notice about removed calls has no id.
      const isLater = ({ role, id }: Partial<UIMessage>): boolean =>
        role === 'user' && id !== undefined && !change.turn!.includes(id);
      const isOver = change.turn !== undefined && messages.slice(Math.max(0, index)).some(isLater);
      if (index < 0 || isOver) return changed(messages, [], isOver);
      const [kept, removed] = [messages.slice(0, index), messages.slice(index)];
      if (isReply) {
        const replaced = findReplacedCalls(removed);
        const isNoted = change.keepsEffects === true && replaced.length > 0;
        // Under an id that no message can have taken.
        const note: UIMessage = { id: `${task.id}-effects`, role: 'user', parts: [] };
        return changed(isNoted ? [...kept, withReplacedCalls(note, replaced)] : kept, replaced);
      }
      // The model of an agent gets them before the next message.
      const before = history.slice(index) as unknown as readonly Message[];
      const replaced = findReplacedCalls(toUiMessages(before, '')).filter(({ tool }) => !readOnlyTools.has(tool));
      return changed(replaced.length === 0 ? kept : [...kept, toNotice(replaced) as unknown as UIMessage]);
    },
  };
}

/** Returns the message that a task adds to a history. One that is replied to again is in it. */
export function readAdded({ inputs }: Pick<TaskRecord, 'inputs'>): readonly UIMessage[] {
  const change = inputs.at(-1) as unknown as HistoryChange;
  return 'add' in change && !change.regenerate ? [change.add] : [];
}

function withAdded(
  messages: readonly UIMessage[],
  { add, regenerate }: Extract<HistoryChange, { add: UIMessage }>,
): readonly UIMessage[] {
  const index = messages.findLastIndex(({ role, id }) => role === 'user' && id === add.id);
  if (index < 0) return [...messages, add];
  return regenerate
    ? [...messages.slice(0, index), withReplacedCalls(add, findReplacedCalls(messages.slice(index)))]
    : messages;
}

/** `done` tells that it ran: a newer message may have cancelled its task only then. */
function changed(
  messages: readonly UIMessage[],
  replaced: readonly ReplacedCall[] = [],
  isRefused = false,
): Promise<TaskOutcome> {
  const result = asJson({ done: true, replaced, ...(isRefused && { isRefused }) });
  return Promise.resolve({ status: 'success', history: asJson(messages) as Json[], result });
}
