import type { Policy } from '@whoa/core';
import type { Runner, StoreCancelReceipt, TaskStore } from '@whoa/tasks';
import type { UIMessage } from 'ai';
import type { Answers } from './answers.ts';

/** A user's message, from any protocol adapter. */
export interface ChatMessage {
  readonly chatId: string;
  readonly message: UIMessage;
  /** The page's name for the run, so that it can be stopped before the server has replied. */
  readonly runId?: string | undefined;
  /** Replies to the message again: everything after it is removed from the history first. */
  readonly regenerate?: boolean;
  readonly sent?: SentWith | undefined;
}

/** What a request has beside its message. It is stored, because another instance may take over the reply. */
export interface SentWith {
  /** The rest of the body, as in `sendMessage(message, { body })`. */
  readonly body?: Readonly<Record<string, unknown>>;
  /** The headers that `forwardHeaders` lists. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** `foreground`: the reply and its calls. `background`: what replies of the chat left running on purpose. */
export type StopScope = 'foreground' | 'background' | 'all';

/** What a page has answered about the calls of a message. */
export interface ChatAnswers extends Pick<ChatMessage, 'chatId' | 'runId' | 'sent'> {
  readonly given: Answers;
}

/** What to stop. If a run is named, only that run is stopped. */
export interface ChatStop {
  readonly chatId: string;
  readonly runId?: string | undefined;
  readonly messageId?: string | undefined;
  readonly scope?: StopScope;
  /** Removes the stopped turn from the history. */
  readonly rollback?: boolean;
  readonly reason?: string | undefined;
  /** The protocol of the request. */
  readonly via: string;
}

/** A user's answer to a question in a chat. */
export interface ChatAnswer {
  readonly chatId: string;
  readonly approvalId: string;
  /** A string means no, and is passed to the model as the reason. */
  readonly approved: boolean | string;
  readonly remember?: boolean;
}

export interface ChatStopReceipt {
  readonly answer: StoreCancelReceipt['answer'] | 'noted' | 'idle';
  readonly rolledBack?: boolean;
  /** Why the turn stays in the history: these calls had effects that were not undone. */
  readonly standing?: readonly string[];
  /** How many background tasks were stopped, if that was asked for. */
  readonly background?: number;
  /** The message whose calls waited for a person or a page, as it is now. */
  readonly message?: UIMessage;
}

export interface ChatParts {
  readonly store: TaskStore;
  readonly runner: Runner;
  /** The agent that replies, by the name that its workers registered. */
  readonly agent: string;
  /** It is the application's own loop, so the history contains UI messages. */
  readonly isReply: boolean;
  /** Whether a page runs a tool of that loop. */
  readonly isElsewhere: (tool: string) => boolean;
  /** Workers in other processes run it. */
  readonly isRemote: boolean;
  readonly policy: Policy;
  /** The names of the tools that only read. */
  readonly readOnlyTools: ReadonlySet<string>;
  readonly describeError?: (error: { message: string }) => string;
}
