import { type Json, toText } from '@whoa/core';
import type { UserMessage } from '@whoa/core/embed';
import { type ConversationRecord, eraseRecords, type TaskStore } from '@whoa/tasks';
import { cancelBackground } from '@whoa/tasks/internal';
import type { UIMessage } from 'ai';
import { may } from '../http/access/access.ts';
import { type Identity, type Principal, type Right, toPrincipal } from '../http/access/principal.ts';
import { HttpError } from '../http/http-error.ts';
import { type ChatRef, isRun } from './chat-history.ts';
import type { Chat } from './chat-types.ts';
import { touchChat } from './chat-watch.ts';
import { joinText } from './ui/ui-messages.ts';

/** A chat in a list. */
interface ChatHead {
  readonly id: string;
  /** The first words of its user. */
  readonly title: string;
  readonly changedAt: number;
}

/** Chats that are kept in the store, in the order of their ids. */
export interface ChatPage {
  readonly chats: readonly ChatHead[];
  /** The `cursor` of the next page. */
  readonly next?: string;
}

/** Which page of chats: at most 50 of them, 20 by default, after `next` of the page before. */
export interface ChatPageRequest {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

const MAX_CHATS = 50;
const TITLE_LENGTH = 120;
/** How long a reply that is stopped may take to end before its chat is removed. */
const WAIT_MS = 15_000;

/** Returns who may do something. Throws if they may not. */
export function requireRights(identity: Identity, ...rights: readonly Right[]): Principal {
  const who = toPrincipal(identity);
  const missing = who === undefined ? 'an identity' : rights.find((right) => !may(who, right));
  if (who !== undefined && missing === undefined) return who;
  throw new HttpError(403, { code: 'forbidden', message: `This needs ${missing}, which you do not have` });
}

export async function listChats(
  { store, history }: Chat,
  { tenant }: Principal,
  { limit = 20, cursor }: ChatPageRequest,
): Promise<ChatPage> {
  if (history !== undefined) {
    const message = 'These chats are in the database of the application; list them from there';
    throw new HttpError(404, { code: 'chats-elsewhere', message });
  }
  const page = { tenant, limit: Math.min(limit, MAX_CHATS), ...(cursor !== undefined && { cursor }) };
  const { conversations, next } = await store.conversations(page);
  const chats: ChatHead[] = [];
  // One at a time: histories may be large.
  for (const conversation of conversations) {
    const record = await store.conversation({ tenant, conversation });
    const title = record && toTitle(record.history.length > 0 ? record.history : await readAsked(store, record));
    // A stop for a run that never came is no chat.
    if (title !== undefined) chats.push({ id: conversation, title, changedAt: record!.changedAt });
  }
  return { chats, ...(next !== undefined && { next }) };
}

/** Stops what a chat does, and removes everything the store has of it. Resolves with whether nothing is left. */
export async function removeChat(chat: Chat, { who, chatId }: ChatRef): Promise<boolean> {
  const { store } = chat;
  // Stores say nothing about a removal: pages look again soon after a change.
  await touchChat(chat, { who, chatId }).catch(() => {});
  const target = { tenant: who.tenant, conversation: chatId };
  await cancelBackground(store, target, { kind: 'user', by: who.name, message: 'its chat is removed' });
  return (await eraseRecords(store, target, { waitMs: WAIT_MS, by: who.name })).isComplete;
}

/** Returns the messages of a chat that has no history yet. */
async function readAsked(store: TaskStore, record: ConversationRecord): Promise<readonly Json[]> {
  const { tenant, current, waiting } = record;
  const ids = [current, ...waiting].filter((id) => id !== undefined);
  const tasks = await Promise.all(ids.map((id) => store.get({ tenant, id })));
  return tasks.flatMap((task) => (task !== undefined && isRun(task) ? task.inputs : []));
}

function toTitle(messages: readonly Json[]): string | undefined {
  if (messages.length === 0) return undefined;
  const first = (messages as unknown as readonly (UIMessage | UserMessage)[]).find(({ role }) => role === 'user');
  if (first === undefined) return '';
  const text = 'parts' in first ? joinText(first.parts, ' ') : toText(first.content);
  return text.trim().replace(/\s+/gu, ' ').slice(0, TITLE_LENGTH);
}
