import { hash } from 'node:crypto';
import { systemClock } from '@whoa/core/embed';
import { waitAtMost } from '@whoa/core/internal';
import type { TaskRecord } from '@whoa/tasks';
import type { UIMessage } from 'ai';
import { isOpen } from '../tasks/read-questions.ts';
import { type ChatRef, getMessageId, historyTask, NEVER, readMessages, requireCreated } from './chat-history.ts';
import { chooseShown, readLive } from './chat-runs.ts';
import type { Chat } from './chat-types.ts';

/** What a page has to know to show a chat, without its words. */
export interface ChatState {
  /** Opaque. Another one: something has changed that a reader could see. */
  readonly version: string;
  /** The message of the reply in progress, which is streamed. */
  readonly reply?: string;
  /** What that reply waits for: approvals by their ids, results of tools by their calls. */
  readonly questions: readonly string[];
}

/** How many of the newest tasks count. Older ones have ended. */
const NEWEST = 5;
/** Changes of one step come together. */
const PAUSE_MS = 50;
/** A hint may be lost. The pause doubles while nothing changes. */
const POLL_MS = 5_000;
const MAX_POLL_MS = 60_000;
/** After this the page opens its watch again, and is authenticated again. */
const MAX_OPEN_MS = 300_000;

/**
 * Returns the messages of a chat with its state, which is read first: if they have changed in between, the watch tells
 * another version, and the page reads again.
 */
export async function readView(
  chat: Chat,
  ref: ChatRef,
): Promise<ChatState & { readonly messages: readonly UIMessage[] }> {
  return { ...(await readState(chat, ref)), messages: await readMessages(chat, ref) };
}

/**
 * The version is derived from what every step writes together with its change: the conversation, its live and newest tasks
 * with their questions, and the version that the application's database has.
 */
async function readState({ store, history }: Chat, { who, chatId }: ChatRef): Promise<ChatState> {
  const ref = { tenant: who.tenant, conversation: chatId };
  const record = await store.conversation(ref);
  const live = record ? await readLive(store, record) : [];
  const { tasks: newest } = await store.list({ ...ref, limit: NEWEST });
  const parts = [
    record?.changedAt ?? 0,
    live.map((task) => [task.id, task.status, ...findOpen(task)]),
    newest.map(({ id, status }) => [id, status]),
    (await history?.read({ chatId, principal: who }))?.version ?? null,
  ];
  const version = hash('sha256', JSON.stringify(parts), 'base64url').slice(0, 22);
  const shown = chooseShown(live);
  return { version, ...(shown && { reply: getMessageId(shown) }), questions: shown ? findOpen(shown) : [] };
}

function findOpen({ questions = [] }: TaskRecord): readonly string[] {
  return questions.filter(isOpen).map(({ id, callId, kind }) => (kind === 'approve' ? id : callId));
}

/** Yields the state of a chat each time it changes; the first one at once, unless it is the one `after` which the page asks. */
export async function* watchChat(
  chat: Chat,
  ref: ChatRef,
  { after, signal }: { readonly after?: string | undefined; readonly signal: AbortSignal },
): AsyncGenerator<ChatState, undefined> {
  let wake = Promise.withResolvers<void>();
  const handleHint = ({ type }: { readonly type: string }): void => {
    if (type !== 'journal') wake.resolve();
  };
  const target = { tenant: ref.who.tenant, conversation: ref.chatId };
  const watching = await chat.store.watch(target, handleHint);
  const left = Promise.withResolvers<void>();
  const leave = (): void => {
    left.resolve();
    wake.resolve();
  };
  signal.addEventListener('abort', leave, { once: true });
  const endsAt = systemClock.now() + MAX_OPEN_MS;
  let shown = after;
  let pollMs = POLL_MS;
  try {
    while (!signal.aborted && systemClock.now() < endsAt) {
      // What happens after this is another change.
      wake = Promise.withResolvers();
      const state = await readState(chat, ref);
      pollMs = state.version === shown ? Math.min(2 * pollMs, MAX_POLL_MS) : POLL_MS;
      if (state.version !== shown) yield state;
      shown = state.version;
      await waitAtMost(wake.promise, pollMs);
      await waitAtMost(left.promise, PAUSE_MS);
    }
  } finally {
    await watching[Symbol.asyncDispose]();
  }
  return undefined;
}

/** Tells all who watch a chat that the application has changed it: by a task that only comes and goes. */
export async function touchChat({ store }: Chat, ref: ChatRef): Promise<void> {
  const note = { ...historyTask(ref, {}), notBefore: NEVER };
  const { task } = requireCreated(await store.create(note, { policy: 'queue' }));
  await store.cancel(task, { kind: 'merged', via: 'chat', message: 'it only noted a change' }, { mode: 'now' });
  await store.remove(task);
}
