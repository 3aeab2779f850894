import { CancelledError, isCancelledError } from '../stop/errors.ts';
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
 * too, and what had come is thrown along as the `partial` of a `CancelledError`.
 */
export async function streamReply(
  model: Model,
  request: ModelRequest,
  options: TurnOptions,
): Promise<AssistantMessage> {
  const { token, tell } = options;
  const builder = new ReplyBuilder();
  const ids = new CallIds(request.messages);
  let hasShown = false;
  // The stream's own token: the signal ends with the stream, whoever ends it.
  const wire = token.child('stream');
  try {
    for await (const given of readParts(model.stream(request, { signal: wire.signal }), wire, options)) {
      const part = ids.own(given);
      builder.add(part);
      const event = eventOf(part);
      if (event === undefined) continue;
      hasShown = true;
      tell(event);
    }
    if (token.reason !== undefined) throw new CancelledError(token.reason, { partial: builder.cut('aborted') });
    if (!builder.isFinished) throw new ModelError('The stream ended before the reply did', { isRetryable: true });
    return builder.finished();
  } catch (error) {
    if (isCancelledError(error)) throw error;
    if (token.reason !== undefined) throw new CancelledError(token.reason, { partial: builder.cut('aborted') });
    throw new ReplyError(error, { partial: builder.cut('error'), hasShown });
  } finally {
    wire.cancel({ kind: 'parent', message: 'the reply is over' }, { how: 'kill' });
    wire[Symbol.dispose]();
  }
}

/**
 * Reads a stream without ever waiting for it longer than the token and `idleMs` allow. It does not wait for the stream's
 * own clean-up either: a generator that is stuck in a read never returns.
 */
async function* readParts(
  stream: AsyncIterable<ModelPart>,
  wire: CancellationToken,
  { token, idleMs }: TurnOptions,
): AsyncGenerator<ModelPart> {
  const iterator = stream[Symbol.asyncIterator]();
  let isOver = false;
  try {
    for (;;) {
      const idle = wire.child('idle');
      idle.cancelAfter(idleMs, { kind: 'deadline' });
      const end = await waitUnder(iterator.next(), idle, 'drain');
      idle[Symbol.dispose]();
      if (token.isCancelled) return;
      if (end.by === 'level') throw new ModelError(`The model sent nothing for ${idleMs} ms`, { isRetryable: true });
      isOver = end.by === 'error' || end.value.done === true;
      if (end.by === 'error') throw end.error;
      if (end.value.done) return;
      yield end.value.value;
    }
  } finally {
    if (!isOver) iterator.return?.().then(undefined, () => {});
  }
}

/** What people may see of a part, as it comes. */
function eventOf(part: ModelPart): TurnEvent | undefined {
  if (part.type === 'text' || part.type === 'thinking') return { type: part.type, text: part.text };
  if (part.type === 'call-start') return { type: 'call-planned', callId: part.callId, tool: part.tool };
  return undefined;
}
