import type { CancelReasonInit } from '@whoa/core';
import { followTask, type TaskRef } from '@whoa/tasks';
import type { UIMessage } from 'ai';
import type { Principal } from '../http/access/principal.ts';
import { type ChatRef, readMessages } from './chat-history.ts';
import type { Chat, ChatStopReceipt } from './chat-types.ts';

/** How long a stop waits until the calls are closed. Pages wait five seconds for its response. */
const CLOSE_MS = 3_000;

/** Stops a reply. A page has no stream of a reply that waits for people: the receipt has its message, with closed calls. */
export async function stopReply(
  parts: Chat,
  { ref, isRead, ...chat }: ChatRef & { readonly ref: TaskRef; readonly isRead: boolean },
  reason: CancelReasonInit,
): Promise<ChatStopReceipt> {
  const { store } = parts;
  const before = isRead ? undefined : await store.get(ref);
  const { result } = await cancelOnce(parts, chat.who, { ref, reason });
  const message = before?.waiting ? await readClosed(parts, chat, ref) : undefined;
  return { result, ...(message && { message }) };
}

/** A page whose stop got no response repeats it: then it was this user who has stopped the reply. */
async function cancelOnce(
  { store }: Chat,
  { name }: Principal,
  { ref, reason }: { readonly ref: TaskRef; readonly reason: CancelReasonInit },
): Promise<{ readonly result: ChatStopReceipt['result'] }> {
  const receipt = await store.cancel(ref, reason, { mode: 'now' });
  if (receipt.result !== 'too-late' || receipt.status !== 'cancelled') return receipt;
  const stopped = (await store.get(ref))?.outcome?.reason;
  return { result: stopped?.kind === 'user' && stopped.by === name ? 'unchanged' : receipt.result };
}

async function readClosed(parts: Chat, chat: ChatRef, ref: TaskRef): Promise<UIMessage | undefined> {
  for await (const seen of followTask(parts.store, ref, { signal: AbortSignal.timeout(CLOSE_MS) })) {
    if (seen.type !== 'end') continue;
    const { id: asked } = (seen.task.inputs.at(-1) ?? {}) as { readonly id?: string };
    const messages = await readMessages(parts, chat);
    const message = messages[messages.findLastIndex(({ id }) => id === asked) + 1];
    return message?.role === 'assistant' ? { ...message, id: ref.id } : undefined;
  }
  return undefined;
}
