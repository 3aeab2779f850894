import type { CancelReasonInit } from '@whoa/core';
import type { JournalEvent, TaskRecord, TaskRef } from '@whoa/tasks';
import { followTask, isFinalStatus, TaskRejectedError } from '@whoa/tasks';
import type { UIMessage } from 'ai';
import { type ChatRef, cutHistory, getMessageId, readHistory, stopWaiting } from './chat-history.ts';
import type { Chat, ChatStopReceipt } from './chat-types.ts';
import { isWithoutEffect } from './replaced-calls.ts';
import { getToolName, isCallPart } from './ui/call-parts.ts';
import type { ReplyEvent } from './ui/chunk-writer.ts';

type TurnEvent = JournalEvent | ReplyEvent;

/**
 * Removes a stopped turn from the history: the message of the user, and the reply with everything that answers have
 * added to it. `keepsEffects`: also if calls had effects, of which a note stays. `ref` is the task that was stopped; without one, a call of the last message may wait.
 */
export async function rollBack(
  parts: Chat,
  { ref, keepsEffects, ...chat }: ChatRef & { readonly ref: TaskRef | undefined; readonly keepsEffects: boolean },
  reason: CancelReasonInit,
): Promise<Partial<ChatStopReceipt>> {
  const { store, readOnlyTools } = parts;
  const journal: TurnEvent[] = [];
  // Until it has ended it may still have effects.
  if (ref)
    for await (const seen of followTask<ReplyEvent>(store, ref)) if (seen.type === 'entry') journal.push(seen.event);
  const stopped = ref && (await store.get(ref));
  const closed = await stopWaiting(parts, { ...chat, messageId: stopped && getMessageId(stopped) }, reason);
  const history = await readHistory(parts, chat);
  if (stopped?.status !== 'cancelled' && closed === undefined)
    return { rolledBack: parts.isReply && stopped !== undefined && isGone(stopped, history) };
  const messageId = stopped ? getMessageId(stopped) : closed!.message!.id;
  const index = history.findLastIndex(({ id, role }) => id === messageId && role === 'assistant');
  const remaining = findRemainingEffects(journal, history[index], readOnlyTools);
  const effects = remaining.length > 0 ? { effectsNotUndone: remaining } : {};
  if (remaining.length > 0 && !keepsEffects) return { ...closed, rolledBack: false, ...effects };
  // The id of a reply's message is the id of the task that began it.
  const started = await store.get({ tenant: chat.who.tenant, id: messageId });
  const asked = started?.inputs[0] as { id?: string } | undefined;
  // If it never started, it is not in the history.
  const kept = started?.startedAt === undefined ? undefined : asked?.id;
  const receipt = closed && { result: closed.result };
  if (kept === undefined) return { ...receipt, rolledBack: true, ...effects };
  try {
    const key = `rollback:${messageId}`;
    const turn = started!.inputs.map((input) => (input as { id?: string }).id!);
    // Decides in the step that removes it: what was said after it stays, and the turn with it.
    const cut = await cutHistory(parts, chat, { from: kept, turn, keepsEffects, policy: 'reject', key });
    const rolledBack = cut !== undefined && cut.isRefused !== true;
    return { ...receipt, rolledBack, ...effects, ...(!cut && parts.history && { unsaved: true }) };
  } catch (error) {
    if (!(error instanceof TaskRejectedError)) throw error;
    // The reply to a newer message has begun.
    return { ...receipt, rolledBack: false, ...effects };
  }
}

/** The turn was removed before: the page repeats a command whose response was lost. */
function isGone(task: TaskRecord, history: readonly UIMessage[]): boolean {
  const { id: asked } = (task.inputs[0] ?? {}) as { readonly id?: string };
  const turn = [getMessageId(task), asked];
  return isFinalStatus(task.status) && !history.some(({ id }) => turn.includes(id));
}

/**
 * Returns the calls of a turn that may have had effects and were not undone. A reply of the application's own loop has
 * a message, in which earlier tasks may have written.
 */
function findRemainingEffects(
  journal: readonly TurnEvent[],
  message: UIMessage | undefined,
  readOnlyTools: ReadonlySet<string>,
): readonly string[] {
  const remaining = new Set<string>();
  for (const event of journal) {
    if (event.type === 'call-end') {
      const { callId, state } = event.result;
      const tool = 'tool' in event.result ? event.result.tool : '';
      if (state !== 'not-started' && !readOnlyTools.has(tool)) remaining.add(callId);
    }
    if (event.type === 'undo-end' && event.state === 'undone') remaining.delete(event.callId);
    for (const chunk of event.type === 'ui-chunks' ? event.chunks : [])
      if (chunk.type === 'tool-input-available' && !readOnlyTools.has(chunk.toolName)) remaining.add(chunk.toolCallId);
  }
  for (const part of message?.parts.filter(isCallPart) ?? []) {
    if (isWithoutEffect(part)) remaining.delete(part.toolCallId);
    else if (!readOnlyTools.has(getToolName(part))) remaining.add(part.toolCallId);
  }
  return [...remaining];
}
