import { type CallRecords, createStoppableTurn } from '@whoa/ai-sdk';
import type { CallRecord } from '@whoa/ai-sdk/internal';
import type { CancelReason, Json, StopLevel, StopReport, Usage } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';
import { describeError } from '@whoa/core/internal';
import type { SelfManagedWork, TaskOutcome, TaskRecord } from '@whoa/tasks';
import type { ToolSet, UIMessage } from 'ai';
import { type Answers, closeWaiting, describeWaiting, findAnswers, findCounting, type LateResult } from './answers.ts';
import { toNote } from './replaced-calls.ts';
import type { ChatTools, ReplyWorkOptions } from './reply-options.ts';
import { isUsageOnly, UsageCounter, withUsage } from './reply-usage.ts';
import { type ClosedCall, createWatchedRecords, findEnd, reportStop } from './stopped-calls.ts';
import {
  asJson,
  createIsElsewhere,
  findOpenCalls,
  findWaitingCalls,
  getToolName,
  type IsElsewhere,
} from './ui/call-parts.ts';
import type { ReplyEvent } from './ui/chunk-writer.ts';
import { ChunkWriter } from './ui/chunk-writer.ts';
import { formMessage } from './ui/message-chunks.ts';
import { closingChunks, type Draft, resumePoint } from './ui/ui-chunks.ts';
import { type DataPart, joinText, withoutBlanks } from './ui/ui-messages.ts';
import { FAILED } from './ui/ui-translator.ts';

type SelfManagedContext = Parameters<SelfManagedWork['runTask']>[0];

type ReplyRunOptions<Tools extends ChatTools> = ReplyWorkOptions<Tools> & {
  /** Called with the error of a reply that failed. */
  readonly onFailure: (error: unknown) => void;
  /** Called when a call ends that was given up. Its task has ended, or is about to. */
  readonly onLate: (task: TaskRecord, end: LateResult) => void;
};

/** Creates work that replies with the application's own loop, and stops it. */
export function createReplyWork<Tools extends ChatTools>(options: ReplyRunOptions<Tools>): SelfManagedWork {
  return {
    runTask: (context) => new ReplyRun(context, options).run(),
    settle: (context) => new ReplyRun(context, options).settle(),
  };
}

/** A task that is stopped for these reasons continues in another process. */
const HAND_OVERS: ReadonlySet<string> = new Set(['shutdown', 'lease-lost']);

class ReplyRun<Tools extends ChatTools> {
  readonly #context: SelfManagedContext;
  readonly #options: ReplyRunOptions<Tools>;
  readonly #writer: ChunkWriter;
  readonly #levels: { level: StopLevel; at: number }[] = [];
  readonly #isElsewhere: IsElsewhere;
  /** What it continues, if its input is not a message. */
  readonly #answers: Answers | undefined;
  readonly #before: readonly UIMessage[];
  readonly #continued: UIMessage | undefined;
  /** Later messages than the one it continues. */
  readonly #after: readonly UIMessage[];
  readonly #isTakenOver: boolean;
  readonly #usage: UsageCounter;
  #isComplete = false;
  /** What the loop itself says about its failure. */
  #errorText: string | undefined;

  constructor(context: SelfManagedContext, options: ReplyRunOptions<Tools>) {
    this.#context = context;
    this.#options = options;
    const { journal, token, previousJournal, task } = context;
    const history = context.history as unknown as readonly UIMessage[];
    const isOwnElsewhere = createIsElsewhere(options.tools);
    // A loop that has ended by itself leaves only calls of tools that it has no code for.
    this.#isElsewhere = (tool) => this.#isComplete || isOwnElsewhere(tool);
    this.#answers = findAnswers(task);
    const index = history.findLastIndex(({ id, role }) => id === this.#answers?.messageId && role === 'assistant');
    this.#continued = index < 0 ? undefined : history[index];
    this.#after = index < 0 ? [] : history.slice(index + 1);
    const superseded = { kind: 'superseded', at: token.clock.now() };
    this.#before =
      this.#answers === undefined
        ? closeWaiting(history, superseded, isOwnElsewhere)
        : history.slice(0, index < 0 ? undefined : index);
    const events = previousJournal.map(({ event }) => event as unknown as ReplyEvent);
    const streamed = events.flatMap(({ chunks }) => [...chunks]);
    this.#isTakenOver = streamed.length > 0;
    this.#usage = new UsageCounter(events.at(-1)?.usage);
    this.#writer = new ChunkWriter({ journal, clock: token.clock, past: streamed, usage: () => this.#usage.current });
    token.onCancel((level) => this.#levels.push({ level, at: token.clock.now() }));
  }

  async run(): Promise<TaskOutcome> {
    const { token, task } = this.#context;
    const late = this.#answers?.messageId ?? task.id;
    const calls = createWatchedRecords((end) => this.#options.onLate(task, { late, ...end }));
    let error: unknown;
    try {
      if (await this.#begin()) error = await this.#stream(calls);
    } catch (thrown) {
      error = thrown;
    }
    const { reason } = token;
    const closed = await this.#close(calls.records(), reason);
    if (error !== undefined && reason === undefined) await this.#fail(error);
    const base = await this.#said();
    if (error === undefined && reason === undefined && this.#isComplete) await this.#tellUsage();
    if (reason !== undefined) {
      const stopReport = this.#report([...calls.records(), ...closed], reason) as unknown as Json;
      const isComplete = error === undefined && this.#isComplete;
      return { ...base, status: 'cancelled', reason, isComplete, stopReport };
    }
    if (error !== undefined) return { ...base, status: 'failed', error: { message: describeError(error) } };
    return { ...base, status: 'success' };
  }

  /** Only after a whole reply: pages check metadata, and what a loop says at its end may be required. */
  async #tellUsage(): Promise<void> {
    const { metadata: messageMetadata } = await this.#message();
    if (isUsageOnly(messageMetadata)) this.#writer.add({ type: 'message-metadata', messageMetadata });
    await this.#writer.flush();
  }

  /** Tells the application the error, and readers what it says about it. */
  async #fail(error: unknown): Promise<void> {
    const { onFailure, describeError: describe } = this.#options;
    onFailure(error);
    try {
      this.#writer.add({ type: 'error', errorText: this.#errorText ?? describe?.(error) ?? FAILED });
    } catch (thrown) {
      onFailure(thrown);
    }
    await this.#writer.flush();
  }

  /**
   * The worker was lost while the task was being cancelled: nothing runs again, and what is open is closed truthfully.
   */
  async settle(): Promise<TaskOutcome> {
    const { reason } = this.#context.task.stop!;
    const closed = await this.#close(undefined, reason);
    const cleanupErrors = ['its worker was lost; what it left behind was not looked for'];
    const report: StopReport = { ...this.#report(closed, reason), cleanupErrors, isClean: false };
    const stopReport = report as unknown as Json;
    return { ...(await this.#said()), status: 'cancelled', reason, isComplete: false, stopReport };
  }

  /** Adds what was answered, or what a lost worker left open. Returns whether the loop has to run. */
  async #begin(): Promise<boolean> {
    let isAsked = this.#answers === undefined;
    if (this.#isTakenOver) {
      const types = new Set(this.#writer.chunks.map(({ type }) => type));
      this.#isComplete = types.has('finish');
      isAsked = !this.#isComplete && !types.has('abort');
      this.#writer.add(...resumePoint(await this.#draft(), this.#isElsewhere));
    } else if (this.#answers !== undefined) {
      const counting = this.#continued ? findCounting(this.#continued, this.#answers, this.#isElsewhere) : [];
      this.#writer.add(...counting.map(({ chunk }) => chunk));
      isAsked = counting.some(({ isLate }) => !isLate);
      // Pages send an answer again after a reply that ended well.
      if (!isAsked) this.#writer.add({ type: 'abort', reason: 'Nothing waited for this answer.' });
      // Before an approved call starts: if this process is lost, no one may start it again.
      await this.#writer.flush();
    }
    return isAsked && findWaitingCalls(await this.#message(), this.#isElsewhere).length === 0;
  }

  /** Streams until the loop and its calls have ended, or the wait is given up. Returns the error, if any. */
  async #stream(calls: CallRecords): Promise<unknown> {
    const { token, task } = this.#context;
    const { reply, tools, mustFinish, convertDataPart, describeError: describe } = this.#options;
    const { convertToModelMessages } = await import('ai');
    const messages = await this.#messages();
    const convert = (part: DataPart) => toNote(part) ?? convertDataPart?.(part);
    const stoppable = createStoppableTurn({
      token,
      history: await convertToModelMessages(
        withoutBlanks(messages, (part) => convert(part) !== undefined),
        {
          ...(tools && { tools: tools as unknown as ToolSet }),
          ignoreIncompleteToolCalls: true,
          convertDataPart: convert,
        },
      ),
      tools: (tools ?? {}) as Tools,
      calls,
      mustFinish: mustFinish as Parameters<typeof createStoppableTurn<Tools, never>>[0]['mustFinish'],
    });
    const turn = this.#usage.watch(stoppable);
    let failure: unknown;
    const streaming = (async () => {
      const { tenant, conversation: chatId = '' } = task;
      const { regenerate: _, ...context } = (task.context ?? {}) as Record<string, unknown>;
      const principal = { tenant, name: tenant, rights: [] };
      const result = await reply(turn as Parameters<typeof reply>[0], {
        chatId,
        tenant,
        principal,
        body: {},
        headers: {},
        ...context,
        messages,
      });
      let noted: unknown;
      // Also called with the errors of calls, which fail nothing else.
      const onError = (error: unknown): string => {
        noted = error;
        return describe?.(error) ?? 'An error occurred.';
      };
      const isOwn = !('toUIMessageStream' in result);
      for await (const chunk of isOwn ? result : result.toUIMessageStream({ onError })) {
        if (chunk.type === 'finish') this.#isComplete = true;
        if (chunk.type === 'error') {
          failure = this.#usage.error ?? noted ?? new Error(chunk.errorText);
          if (isOwn) this.#errorText = chunk.errorText;
          // The task writes its own end.
        } else if (chunk.type !== 'abort') this.#writer.add(chunk);
        else if (!token.isCancelled) failure = new Error("The loop's own abortSignal has ended this reply");
      }
    })();
    const end = await waitUntilLevel(streaming, token, 'kill');
    await turn.settled;
    return end.by === 'error' ? end.error : failure;
  }

  /** Returns the chat with this reply so far. */
  async #messages(): Promise<readonly UIMessage[]> {
    const asked = this.#answers === undefined ? (this.#context.task.inputs as unknown as UIMessage[]) : [];
    const reply = await this.#message();
    return [...this.#before, ...asked, ...(reply.parts.length > 0 ? [reply] : []), ...this.#after];
  }

  /** Returns its tokens so far. They are all of them only if the loop has ended by itself, in one process. */
  #spent(): Usage | undefined {
    const usage = this.#usage.current;
    return usage && { ...usage, isComplete: usage.isComplete && this.#isComplete && !this.#isTakenOver };
  }

  /** Returns the reply so far. Its metadata is its tokens, unless the loop has its own metadata. */
  async #message(): Promise<UIMessage> {
    const id = this.#answers?.messageId ?? this.#context.task.id;
    const message = await formMessage(id, this.#writer.chunks, this.#continued);
    const metadata = withUsage(message.metadata, this.#continued?.metadata, this.#spent());
    return metadata === undefined ? message : { ...message, metadata };
  }

  async #draft(): Promise<Draft> {
    return { message: await this.#message(), chunks: this.#writer.chunks };
  }

  /** Closes what is open, unless it waits and no one has stopped it. `records` is what this process knows of its calls. */
  async #close(records: readonly CallRecord[] | undefined, reason: CancelReason | undefined): Promise<ClosedCall[]> {
    const isStopped = reason !== undefined && !HAND_OVERS.has(reason.kind);
    const message = await this.#message();
    const waiting = findWaitingCalls(message, this.#isElsewhere);
    const known = new Map(records?.map((record) => [record.toolCallId, record]));
    const closed: ClosedCall[] = [];
    for (const part of findOpenCalls(message)) {
      const { toolCallId, approval } = part;
      const tool = getToolName(part);
      const isHeld = waiting.includes(part);
      if (isHeld && !isStopped) continue;
      const record = known.get(toolCallId);
      const isInPage = approval === undefined || (approval.approved === true && this.#isElsewhere(tool));
      // What this process runs is recorded before it starts.
      const isOwn = records !== undefined && Object.hasOwn(this.#options.tools ?? {}, tool);
      const state = (isHeld ? !isInPage : isOwn) ? 'not-started' : 'unknown';
      const end = isHeld
        ? ({ type: 'tool-output-error', toolCallId, errorText: describeWaiting(!isInPage, reason!) } as const)
        : findEnd(toolCallId, record ?? { state }, reason);
      this.#writer.add(end);
      if (record === undefined) closed.push({ callId: toolCallId, toolCallId, tool, state });
      known.delete(toolCallId);
    }
    // Needed because the SDK hides the output of a stopped tool.
    for (const record of known.values())
      if (record.state === 'interrupted' || record.state === 'unknown')
        this.#writer.add(findEnd(record.toolCallId, record, reason));
    // Whoever takes it over generates the text of an open step again.
    if (reason === undefined || isStopped) this.#writer.add(...closingChunks(await this.#draft()));
    await this.#writer.flush();
    return closed;
  }

  async #said(): Promise<Pick<TaskOutcome, 'answer' | 'newMessages' | 'history' | 'usage'>> {
    const message = await this.#message();
    const usage = this.#spent();
    const answer = { answer: joinText(message.parts), ...(usage && { usage }) };
    if (this.#answers === undefined && (this.#before as readonly unknown[]) === this.#context.history) {
      const added = [...this.#context.task.inputs, ...(message.parts.length > 0 ? [message] : [])];
      return { ...answer, newMessages: asJson(added) as Json[] };
    }
    return { ...answer, history: asJson(await this.#messages()) as Json[] };
  }

  #report(calls: readonly ClosedCall[], reason: CancelReason): StopReport {
    return reportStop(calls, { reason, levels: this.#levels, now: this.#context.token.clock.now() });
  }
}
