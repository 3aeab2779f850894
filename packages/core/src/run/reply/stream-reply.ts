import type { CancellationToken } from '../../stop/token/token.ts';
import { describeError } from '../../tool/normalize.ts';
import { CallIds, ReplyCallIds } from '../history/call-ids.ts';
import type { AssistantMessage } from '../history/message.ts';
import { ReplyBuilder } from '../history/reply-builder.ts';
import type { TurnEvent } from '../report/events.ts';
import { type Model, ModelError, type ModelPart, type ModelRequest } from './model.ts';
import { ModelStream } from './model-stream.ts';

/** More than any model writes in one reply: a stream that never ends must not fill the memory. */
const MAX_REPLY_CHARACTERS = 4_000_000;

export interface StreamReplyOptions {
  readonly token: CancellationToken;
  readonly emit: (event: TurnEvent) => void;
  readonly leaveRunning?: ((name: string, ended: PromiseLike<unknown>) => void) | undefined;
  /** If a provider sends nothing for this long, the reply fails. */
  readonly idleTimeoutMs: number;
}

/** Thrown when a reply broke off. `partial` is the reply so far, `hasShown` whether a user has seen any of it. */
export class ReplyError extends Error {
  override readonly name: string = 'ReplyError';
  readonly code: string = 'REPLY_TRUNCATED';
  readonly partial: AssistantMessage;
  readonly hasShown: boolean;
  /** Whether any of it had arrived: then it may have cost something. */
  readonly hasStarted: boolean;

  constructor(cause: unknown, reply: Pick<ReplyError, 'partial' | 'hasShown' | 'hasStarted'>) {
    super(describeError(cause), { cause });
    this.partial = reply.partial;
    this.hasShown = reply.hasShown;
    this.hasStarted = reply.hasStarted;
  }
}

/**
 * Streams one reply under a token. Replies are never protected: at any level the stream and its connection are closed
 * immediately, and the part so far is the reply, with `aborted` as its `stopReason`. Once the reply is complete,
 * nothing that its stream does affects it.
 */
export async function streamReply(
  model: Model,
  request: ModelRequest,
  options: StreamReplyOptions,
): Promise<AssistantMessage> {
  const { token, emit } = options;
  const builder = new ReplyBuilder(model.source);
  const ids = new ReplyCallIds(new CallIds().reserve(request.messages));
  let hasShown = false;
  // Includes the arguments of calls.
  let characters = 0;
  let stream: ModelStream | undefined;
  try {
    stream = new ModelStream(model, request, options);
    for (let part = await stream.next(); part !== undefined; part = await stream.next()) {
      const own = ids.own(checkPart(part));
      characters += 'text' in own ? own.text.length : 0;
      if (characters > MAX_REPLY_CHARACTERS)
        throw new ModelError(`The reply is longer than ${MAX_REPLY_CHARACTERS} characters`, { isRetryable: false });
      builder.add(own);
      if (builder.stopReason === 'error') throw new ModelError("The model's reply was cut off", { isRetryable: false });
      if (builder.isFinished) stream.expectEnd();
      const event = toEvent(own);
      if (event === undefined) continue;
      hasShown = true;
      emit(event);
    }
    if (!builder.isFinished && token.isCancelled) return builder.cut('aborted');
    if (!builder.isFinished)
      throw new ModelError('The stream ended before the reply was complete', { isRetryable: true });
    return builder.finished();
  } catch (error) {
    if (builder.isFinished && builder.stopReason !== 'error') return builder.finished();
    if (token.isCancelled) return builder.cut('aborted');
    throw new ReplyError(error, { partial: builder.cut('error'), hasShown, hasStarted: builder.hasStarted });
  } finally {
    const ending = stream?.close();
    if (ending !== undefined) options.leaveRunning?.('model stream', ending);
  }
}

const TEXTS: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  thinking: ['text'],
  'call-start': ['callId', 'tool'],
  'call-arguments': ['callId', 'text'],
  'call-end': ['callId', 'tool'],
};

/** Checks every field of a part: adapters are third-party code. */
function checkPart(part: ModelPart): ModelPart {
  const fields = TEXTS[part.type] ?? [];
  const bad = fields.find((field) => typeof (part as unknown as Record<string, unknown>)[field] !== 'string');
  if (bad === undefined) return part;
  throw new ModelError(`The model sent a '${part.type}' whose ${bad} is not a string`, { isRetryable: false });
}

/** The event that users see for a part as it arrives. */
function toEvent(part: ModelPart): TurnEvent | undefined {
  if (part.type === 'text' || part.type === 'thinking') return { type: part.type, text: part.text };
  if (part.type === 'call-start') return { type: 'call-planned', callId: part.callId, tool: part.tool };
  return undefined;
}
