import type { StoppableTurn } from '@whoa/ai-sdk';
import type { AiSdkTool } from '@whoa/ai-sdk/internal';
import type { convertToModelMessages, ModelMessage, streamText, UIMessage, UIMessageChunk } from 'ai';
import type { Principal } from '../http/access/principal.ts';

/** The tools of your own loop, in the AI SDK's format. */
export type ChatTools = Readonly<Record<string, AiSdkTool>>;

/** What the application's own loop gets in addition to its turn. */
interface ReplyContext {
  readonly chatId: string;
  /** The tenant that owns the chat. */
  readonly tenant: string;
  /** Who has sent the message. */
  readonly principal: Principal;
  /** The chat so far, as the page shows it. */
  readonly messages: readonly UIMessage[];
  /** What the page sent in addition to the messages: `sendMessage(message, { body })`, or sent with the message that is continued. At most 15 KB with the headers. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The headers that `forwardHeaders` lists, by their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What `streamText` returns, or a UI message stream: `toUIMessageStream({ stream: streamText(…).stream, … })`. */
type ReplyStream =
  | AsyncIterable<UIMessageChunk>
  | { toUIMessageStream(options?: { onError?: (error: unknown) => string }): AsyncIterable<UIMessageChunk> };

type Turn<Tools extends ChatTools> = StoppableTurn<Tools, ModelMessage>;

/** The turn of a reply. Its `with` knows the options of `streamText`. */
type ChatTurn<Tools extends ChatTools> = {
  readonly with: <Given extends Partial<Parameters<typeof streamText>[0]>>(
    given: Given,
  ) => Omit<Given, keyof Turn<Tools>> & Omit<Turn<Tools>, 'settled' | 'with'>;
} & Turn<Tools>;

/** Replies with the application's own loop: `(turn) => streamText(turn.with({ model }))`. */
type ChatReply<Tools extends ChatTools> = (
  turn: ChatTurn<Tools>,
  context: ReplyContext,
) => ReplyStream | PromiseLike<ReplyStream>;

export interface ReplyWorkOptions<Tools extends ChatTools> {
  readonly reply: ChatReply<Tools>;
  readonly tools?: Tools | undefined;
  /** Tools that must not be interrupted, each with the time it may take. */
  readonly mustFinish?: { readonly [Name in keyof Tools]?: { readonly timeoutMs: number } | undefined } | undefined;
  /** Returns what the model gets of a data part, as for `convertToModelMessages`. Defaults to nothing. */
  readonly convertDataPart?: NonNullable<Parameters<typeof convertToModelMessages>[1]>['convertDataPart'] | undefined;
  /** Returns the text for the reader of a reply that failed, or of a call. Defaults to one that says nothing about it. */
  readonly describeError?: ((error: unknown) => string) | undefined;
}
