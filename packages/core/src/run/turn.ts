import type { CancellationToken } from '../stop/token.ts';
import { waitUnder } from '../stop/wait.ts';
import { CallIds } from './call-ids.ts';
import type { TurnEvent } from './events.ts';
import type { AssistantMessage } from './message.ts';
import { type Model, ModelError, type ModelPart, type ModelRequest } from './model.ts';
import { ReplyBuilder } from './reply-builder.ts';

export interface TurnOptions {
  readonly token: CancellationToken;
  readonly tell: (event: TurnEvent) => void;
  /** A provider that sends nothing for this long has stopped answering. */
  readonly idleMs: number;
}

/** Thrown when a reply broke off. `partial` is what it had; `hasShown` says whether anybody saw any of it. */
export class ReplyError extends Error {
  override readonly name: string = 'ReplyError';
  readonly code: string = 'REPLY_BROKE_OFF';
  readonly partial: AssistantMessage;
  readonly hasShown: boolean;

  constructor(cause: unknown, reply: { partial: AssistantMessage; hasShown: boolean }) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.partial = reply.partial;
    this.hasShown = reply.hasShown;
  }
}

/**
 * One streamed reply under a token. Words are never protected: at any level the stream is closed at once, the connection
 * too, and what had come is the reply, with `aborted` as its `stopReason`.
 */
export async function streamReply(
  model: Model,
  request: ModelRequest,
  options: TurnOptions,
): Promise<AssistantMessage> {
  const { token, tell, idleMs } = options;
  const builder = new ReplyBuilder();
  const ids = new CallIds(request.messages);
  let hasShown = false;
  let open: AsyncIterator<ModelPart> | undefined;
  // The stream's own token: the signal ends with the stream, whoever ends it.
  const wire = token.child('stream');
  try {
    const stream = model.stream(request, { signal: wire.signal })[Symbol.asyncIterator]();
    open = stream;
    for (;;) {
      const part = stream.next();
      const idle = wire.child('idle');
      idle.cancelAfter(idleMs, { kind: 'deadline' });
      const end = await waitUnder(part, idle, 'drain');
      idle[Symbol.dispose]();
      if (token.isCancelled) return builder.cut('aborted');
      if (end.by === 'level') throw new ModelError(`The model sent nothing for ${idleMs} ms`, { isRetryable: true });
      if (end.by === 'error' || end.value.done) open = undefined;
      if (end.by === 'error') throw end.error;
      if (end.value.done) break;
      const own = ids.own(end.value.value);
      builder.add(own);
      const event = eventOf(own);
      if (event === undefined) continue;
      hasShown = true;
      tell(event);
    }
    if (!builder.isFinished) throw new ModelError('The stream ended before the reply did', { isRetryable: true });
    return builder.finished();
  } catch (error) {
    if (token.isCancelled) return builder.cut('aborted');
    throw new ReplyError(error, { partial: builder.cut('error'), hasShown });
  } finally {
    // Never wait for the stream's own clean-up: a generator that is stuck in a read does not return.
    open?.return?.().then(undefined, () => {});
    wire.cancel({ kind: 'parent', message: 'the reply is over' }, { how: 'kill' });
    wire[Symbol.dispose]();
  }
}

/** What people may see of a part, as it comes. */
function eventOf(part: ModelPart): TurnEvent | undefined {
  if (part.type === 'text' || part.type === 'thinking') return { type: part.type, text: part.text };
  if (part.type === 'call-start') return { type: 'call-planned', callId: part.callId, tool: part.tool };
  return undefined;
}
