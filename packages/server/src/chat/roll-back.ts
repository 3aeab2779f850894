import type { CancelReasonInit } from '@whoa/core';
import { followTask, type TaskRef } from '@whoa/tasks';
import { type ChatRef, cutHistory, getMessageId, readHistory, stopWaiting } from './chat-history.ts';
import type { ChatParts, ChatStopReceipt } from './chat-types.ts';
import { findRemainingEffects } from './remaining-effects.ts';

/**
 * Removes a stopped turn from the history: the message of the user, and the reply with everything that answers have
 * added to it. `ref` is the task that was stopped; without one, a call of the last message may wait.
 */
export async function rollBack(
  parts: ChatParts,
  { ref, ...chat }: ChatRef & { readonly ref: TaskRef | undefined },
  reason: CancelReasonInit,
): Promise<Partial<ChatStopReceipt>> {
  const { store, readOnlyTools } = parts;
  const journal: unknown[] = [];
  // Until it has ended it may still have effects.
  if (ref) for await (const seen of followTask(store, ref)) if (seen.type === 'entry') journal.push(seen.event);
  const stopped = ref && (await store.get(ref));
  const closed = await stopWaiting(parts, { ...chat, messageId: stopped && getMessageId(stopped) }, reason);
  if (stopped?.status !== 'cancelled' && closed === undefined) return { rolledBack: false };
  const messageId = stopped ? getMessageId(stopped) : closed!.message!.id;
  const history = await readHistory(parts, chat);
  const index = history.findLastIndex(({ id, role }) => id === messageId && role === 'assistant');
  const remaining = findRemainingEffects(journal, history[index], readOnlyTools);
  if (remaining.length > 0) return { ...closed, rolledBack: false, effectsNotUndone: remaining };
  // What was said after it stays.
  if (index >= 0 && index < history.length - 1) return { ...closed, rolledBack: false };
  // The id of a reply's message is the id of the task that began it.
  const started = await store.get({ tenant: chat.who.tenant, id: messageId });
  const asked = started?.inputs[0] as { id?: string } | undefined;
  // If it never started, it is not in the history.
  const kept = started?.startedAt === undefined ? undefined : asked?.id;
  const rolledBack = kept === undefined || (await cutHistory(parts, chat, kept));
  return {
    ...(closed && { result: closed.result }),
    rolledBack,
    ...(!rolledBack && parts.history && { unsaved: true }),
  };
}
