import type { Policy } from '@whoa/core';
import type { Runner, StoreCancelReceipt, TaskRef, TaskStore } from '@whoa/tasks';
import type { UIMessage } from 'ai';
import type { Access } from '../http/access/access.ts';
import type { Answers } from './answers.ts';
import type { AppHistory } from './app-history.ts';
import type { StopOptions, StopReceipt } from './client/chat-stop.ts';

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

/** What a request has in addition to its message. It is stored, because another instance may take over the reply. */
interface SentWith {
  /** The rest of the body, as in `sendMessage(message, { body })`. */
  readonly body?: Readonly<Record<string, unknown>>;
  /** The headers that `forwardHeaders` lists. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a page has answered about the calls of a message. */
export interface ChatAnswers extends Pick<ChatMessage, 'chatId' | 'runId' | 'sent'> {
  readonly given: Answers;
  /** How many steps of the message the page has. */
  readonly steps: number;
}

/** What happened to the answers of a page. */
export interface Continued {
  /** The reply that continues the message. */
  readonly ref?: TaskRef;
  /** It is continued with the answers of this page. */
  readonly isOwn: boolean;
  /** The message as it is, if it was answered or stopped elsewhere and nothing continues it. */
  readonly message?: UIMessage | undefined;
}

/** What to stop in a chat. If a run is named, only that run is stopped. */
export interface StopRequest {
  readonly runId?: string | undefined;
  readonly messageId?: string | undefined;
  /** `foreground`: the reply and its calls. `background`: what replies of the chat left running on purpose. */
  readonly scope?: NonNullable<StopOptions['scope']>;
  /** Removes the stopped turn from the history; `with-effects`: also if its calls had effects that were not undone. */
  readonly rollback?: boolean | 'with-effects';
  readonly reason?: string | undefined;
}

export interface ChatStop extends StopRequest {
  readonly chatId: string;
  /** The protocol of the request. */
  readonly via: string;
}

/** A user's answer to a question in a chat. */
export interface ChatAnswer {
  readonly chatId: string;
  readonly approvalId: string;
  readonly decision: 'yes' | 'no' | 'always' | 'never';
  /** The reason that the model gets with a no. */
  readonly why?: string;
}

export interface ChatStopReceipt extends StopReceipt {
  readonly result: StoreCancelReceipt['result'] | 'recorded' | 'idle';
  /** The application's database refused the change, so nothing was removed or closed. */
  readonly unsaved?: true;
}

/** Chats in a task store, for every protocol adapter. Each chat is a conversation of its tenant. */
export interface Chat {
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
  readonly access: Access;
  readonly waitUntil: ((ended: Promise<unknown>) => void) | undefined;
  /** Where the chats are kept, if not in the store. */
  readonly history: AppHistory | undefined;
  /** The names of the tools that only read. */
  readonly readOnlyTools: ReadonlySet<string>;
  readonly describeError: ((error: { message: string }) => string) | undefined;
}
