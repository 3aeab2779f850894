import type { Clock } from '../stop/clock.ts';
import { type ErrorHook, reportFailure } from '../stop/hooks.ts';
import { waitAtMost } from '../stop/wait.ts';

/** The statuses whose replies are sent. */
const SENT: ReadonlySet<string> = new Set(['answered', 'failed', 'cancelled', 'rejected']);

/** A reply that takes longer to send no longer holds up those behind it. */
const MAX_SEND_MS = 10_000;

interface SendOptions<Reply> {
  readonly onReply?: ((reply: Reply) => unknown) | undefined;
  readonly hooks?: ErrorHook | undefined;
  readonly clock: Clock;
}

/**
 * Creates a function that passes replies to `onReply`.
 *
 * @returns The function. It sends the replies of one conversation one at a time, and never rejects.
 */
export function createReplySender<Reply extends { readonly conversationId: string; readonly status: string }>(
  options: SendOptions<Reply>,
): (reply: Reply) => Promise<void> {
  const { onReply, hooks, clock } = options;
  const last = new Map<string, Promise<void>>();
  const sendNow = async (reply: Reply): Promise<void> => {
    try {
      await waitAtMost(Promise.resolve(onReply?.(reply)), MAX_SEND_MS, clock);
    } catch (error) {
      reportFailure(hooks, 'onReply', error);
    }
  };
  return async (reply) => {
    if (!SENT.has(reply.status)) return;
    const id = reply.conversationId;
    const sending = last.get(id)?.then(() => sendNow(reply)) ?? sendNow(reply);
    last.set(id, sending);
    await sending;
    if (last.get(id) === sending) last.delete(id);
  };
}
