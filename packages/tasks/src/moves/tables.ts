import type { Json } from '@whoa/core';
import type { Hint, ListFilter } from '../store.ts';
import type { ConversationRecord, ConversationRef, JournalEntry, TaskRecord } from '../task.ts';

/** Where a conversation stands, without what was said in it: that may be long, and most moves need it not. */
export type Line = Omit<ConversationRecord, 'history'>;

/** What the moves work on: one transaction on a local store. Nothing here waits, so nothing can come in between. */
export interface Tables {
  task(id: string): TaskRecord | undefined;
  saveTask(task: TaskRecord): void;
  conversation(ref: ConversationRef): Line | undefined;
  saveConversation(line: Line): void;
  history(ref: ConversationRef): readonly Json[];
  /** Adds to a history, at little cost however long it is. */
  addHistory(ref: ConversationRef, said: readonly Json[]): void;
  clearHistory(ref: ConversationRef): void;
  /** Removes what an older task of the same name may have left. */
  clear(id: string): void;
  addEntries(id: string, entries: readonly JournalEntry[]): void;
  /** How large those entries are together that are there. */
  bytesOf(id: string, positions: readonly number[]): number;
  removeEntries(id: string, positions: readonly number[]): void;
  /** The number of a command, by the nonce that it was sent with. */
  sent(id: string, nonce: string): number | undefined;
  /** Notes a nonce; only those of the latest `NONCES_MAX` numbers need be kept. */
  saveSent(id: string, sent: { readonly nonce: string; readonly number: number }): void;
  /** Told to watchers once the transaction has been committed. */
  tell(hint: Hint): void;
}

/** What a local store is asked. */
export interface Queries {
  list(filter: ListFilter & { readonly limit: number }): readonly TaskRecord[];
  entries(id: string, range: { readonly after: number; readonly limit: number }): readonly JournalEntry[];
  due(query: { readonly now: number; readonly limit: number; readonly shard: number | undefined }): readonly string[];
  /** Forgets a few tasks that ended before, and conversations untouched since; constant work each time. */
  forget(before: { readonly endedAt: number; readonly changedAt: number }): void;
}

/** When and under which rules a move happens. */
export interface Moment {
  readonly now: number;
  readonly attemptsMax: number;
}

/** A task as its watchers know it. A cancel brings its order along. */
export function hintOf(type: Exclude<Hint, { type: 'resync' }>['type'], task: TaskRecord): Hint {
  const { id, tenant, worker, conversation, epoch, stop } = task;
  return {
    type,
    id,
    tenant,
    ...(worker !== undefined && { worker }),
    ...(conversation !== undefined && { conversation }),
    ...(type === 'cancel' && stop !== undefined && { order: { epoch, stop } }),
  };
}
