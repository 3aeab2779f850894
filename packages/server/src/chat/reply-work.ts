import {
  type AiSdkTool,
  type CallRecord,
  createCallLedger,
  createStoppableTurn,
  type StoppableTurn,
} from '@whoa/ai-sdk';
import type { CancelReason, Json, StopLevel, StopReport } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';
import { describeError, describeStoppedCall } from '@whoa/core/internal';
import type { HeldWork, TaskOutcome } from '@whoa/tasks';
import type { ModelMessage, ToolSet, UIMessage, UIMessageChunk } from 'ai';
import type { ReplyEvent } from './ui/chunk-writer.ts';
import { ChunkWriter } from './ui/chunk-writer.ts';
import { closingChunks, openCallsIn, resumePoint } from './ui/ui-chunks.ts';

type HeldContext = Parameters<HeldWork['hold']>[0];

/** The tools of your own loop, in the AI SDK's format. */
export type ChatTools = Readonly<Record<string, AiSdkTool>>;

/** What the application's own loop gets beside its turn. */
export interface ReplyContext {
  readonly chatId: string;
  /** The tenant that owns the chat. */
  readonly tenant: string;
  /** The chat so far, as the page shows it. */
  readonly messages: readonly UIMessage[];
}

/** What `streamText` returns, or anything else that converts to a UI message stream. */
export interface ReplyStream {
  toUIMessageStream(options?: {
    sendStart?: boolean;
    sendFinish?: boolean;
    onError?: (error: unknown) => string;
  }): AsyncIterable<UIMessageChunk>;
}

/** Replies with the application's own loop: `(turn) => streamText({ model, ...turn })`. */
export type ChatReply<Tools extends ChatTools> = (
  turn: StoppableTurn<Tools, ModelMessage>,
  context: ReplyContext,
) => ReplyStream | PromiseLike<ReplyStream>;

export interface ReplyWorkOptions<Tools extends ChatTools> {
  readonly reply: ChatReply<Tools>;
  readonly tools?: Tools;
  /** Tools that must not be interrupted, each with the time it may take. */
  readonly mustFinish?: { readonly [Name in keyof Tools]?: { readonly timeoutMs: number } };
  /** Called with an error of a reply. Returns the text for its reader. */
  readonly onError?: (error: unknown) => string;
}

/** Chunks that mark the start and end of a message. The task writes them instead. */
const OF_THE_TASK: ReadonlySet<string> = new Set(['start', 'finish', 'abort']);

/** Creates work that replies with the application's own loop, and stops it. */
export function createReplyWork<Tools extends ChatTools>(options: ReplyWorkOptions<Tools>): HeldWork {
  return {
    hold: (context) => new ReplyRun(context, options).run(),
    settle: (context) => new ReplyRun(context, options).settle(),
  };
}

class ReplyRun<Tools extends ChatTools> {
  readonly #context: HeldContext;
  readonly #options: ReplyWorkOptions<Tools>;
  readonly #writer: ChunkWriter;
  readonly #levels: { level: StopLevel; at: number }[] = [];

  constructor(context: HeldContext, options: ReplyWorkOptions<Tools>) {
    this.#context = context;
    this.#options = options;
    const { journal, token, past } = context;
    const streamed = past.flatMap(({ event }) => [...(event as unknown as ReplyEvent).chunks]);
    this.#writer = new ChunkWriter({ journal, clock: token.clock, past: streamed });
    token.onCancel((level) => this.#levels.push({ level, at: token.clock.now() }));
  }

  async run(): Promise<TaskOutcome> {
    const { token } = this.#context;
    const calls = createCallLedger();
    let error: unknown;
    try {
      this.#writer.add(...resumePoint(this.#writer.chunks));
      error = await this.#stream(calls);
    } catch (thrown) {
      error = thrown;
    }
    const { reason } = token;
    await this.#close(calls.records(), reason);
    const base = await this.#said();
    if (reason !== undefined) {
      const stop = this.#report(calls.records(), reason) as unknown as Json;
      return { ...base, status: 'cancelled', reason, complete: error === undefined && this.#isComplete, stop };
    }
    if (error !== undefined) return { ...base, status: 'failed', error: { message: describeError(error) } };
    return { ...base, status: 'success' };
  }

  /**
   * The worker was lost while the task was being cancelled: nothing runs again, and what is open is closed truthfully.
   */
  async settle(): Promise<TaskOutcome> {
    const { reason } = this.#context.task.stop!;
    await this.#close([], reason);
    const stop: StopReport = {
      ...this.#report([], reason),
      cleanupErrors: ['its worker was lost; what it left behind was not looked for'],
      clean: false,
    };
    return { ...(await this.#said()), status: 'cancelled', reason, complete: false, stop: stop as unknown as Json };
  }

  #isComplete = false;

  /** Streams until the loop and its calls have ended, or the wait is given up. Returns the error, if any. */
  async #stream(calls: ReturnType<typeof createCallLedger>): Promise<unknown> {
    const { token, task } = this.#context;
    const { reply, tools, mustFinish, onError } = this.#options;
    const { convertToModelMessages } = await import('ai');
    const messages = await this.#messages();
    const turn = createStoppableTurn({
      token,
      history: await convertToModelMessages([...messages], {
        ...(tools && { tools: tools as unknown as ToolSet }),
        ignoreIncompleteToolCalls: true,
      }),
      tools: (tools ?? {}) as Tools,
      calls,
      ...(mustFinish && { mustFinish }),
    });
    let failure: unknown;
    const streaming = (async () => {
      const result = await reply(turn, { chatId: task.conversation ?? '', tenant: task.tenant, messages });
      const note = (error: unknown): string => {
        failure = error;
        return onError?.(error) ?? 'Something went wrong; nothing more is running.';
      };
      for await (const chunk of result.toUIMessageStream({ sendStart: false, sendFinish: true, onError: note })) {
        if (chunk.type === 'finish') this.#isComplete = true;
        if (chunk.type !== 'error' && !OF_THE_TASK.has(chunk.type)) this.#writer.add(chunk);
      }
    })();
    const end = await waitUntilLevel(streaming, token, 'kill');
    await turn.settled;
    return end.by === 'error' ? end.error : failure;
  }

  /** Returns the chat with this reply so far. */
  async #messages(): Promise<readonly UIMessage[]> {
    const { history, task } = this.#context;
    const before = [...history, ...task.inputs] as unknown as UIMessage[];
    const answer = await this.#message();
    return answer.parts.length === 0 ? before : [...before, answer];
  }

  /** Returns the message that the chunks form. */
  async #message(): Promise<UIMessage> {
    const { readUIMessageStream } = await import('ai');
    let message: UIMessage = { id: this.#context.task.id, role: 'assistant', parts: [] };
    const chunks: readonly UIMessageChunk[] = [{ type: 'start', messageId: message.id }, ...this.#writer.chunks];
    const stream = new ReadableStream<UIMessageChunk>({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(chunk);
        controller.close();
      },
    });
    for await (const state of readUIMessageStream({ stream })) message = state;
    return message;
  }

  async #close(records: readonly CallRecord[], reason: CancelReason | undefined): Promise<void> {
    const known = new Map(records.map((record) => [record.toolCallId, record]));
    for (const toolCallId of openCallsIn(this.#writer.chunks)) {
      this.#writer.add(endOf(toolCallId, known.get(toolCallId), reason));
      known.delete(toolCallId);
    }
    // Needed because the SDK hides the output of a stopped tool.
    for (const record of known.values())
      if (record.state === 'interrupted' || record.state === 'unknown')
        this.#writer.add(endOf(record.toolCallId, record, reason));
    this.#writer.add(...closingChunks(this.#writer.chunks));
    await this.#writer.flush();
  }

  async #said(): Promise<Pick<TaskOutcome, 'answer' | 'said'>> {
    const message = await this.#message();
    const answer = message.parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
    const said = [...this.#context.task.inputs, ...(message.parts.length > 0 ? [message] : [])];
    return { answer, said: JSON.parse(JSON.stringify(said)) as Json[] };
  }

  #report(records: readonly CallRecord[], reason: CancelReason): StopReport {
    const now = this.#context.token.clock.now();
    const calls = records.map(({ callId, toolCallId, tool, state }) => ({
      callId: toolCallId || callId,
      tool,
      state: state === 'running' ? ('unknown' as const) : state,
      afterMs: now - reason.at,
      waitedFor: false,
    }));
    return {
      reason,
      settledAfterMs: now - reason.at,
      levels: this.#levels.map(({ level, at }) => ({ level, afterMs: at - reason.at })),
      calls,
      cleanupErrors: [],
      clean: calls.every(({ state }) => state !== 'unknown'),
    };
  }
}

/** Returns the end of a call whose result the loop never streamed. */
function endOf(toolCallId: string, record: CallRecord | undefined, reason: CancelReason | undefined): UIMessageChunk {
  if (record?.state === 'finished') return { type: 'tool-output-available', toolCallId, output: record.output ?? null };
  if (record?.state === 'failed')
    return { type: 'tool-output-error', toolCallId, errorText: describeError(record.error) };
  const state = record === undefined || record.state === 'running' ? 'unknown' : record.state;
  const why = record?.reason ?? reason;
  const errorText =
    why === undefined
      ? 'Outcome unknown: the process that ran it stopped before it ended. It may have taken effect.'
      : describeStoppedCall(state, why);
  return { type: 'tool-output-error', toolCallId, errorText };
}
