import type { AppContext, CancelReasonInit, Json, Policy } from '@whoa/core';
import {
  type AnswerReceipt,
  type ConversationRef,
  followTask,
  isFinalStatus,
  type NewTask,
  type Runner,
  type TaskRecord,
  type TaskRef,
} from '@whoa/tasks';
import { cancelBackground } from '@whoa/tasks/internal';
import type { UIMessage, UIMessageChunk } from 'ai';
import { lacksRight, may } from '../http/access/access.ts';
import type { Principal } from '../http/access/principal.ts';
import { HttpError } from '../http/http-error.ts';
import { keepsQuestions } from '../tasks/answering.ts';
import { readQuestions } from '../tasks/read-questions.ts';
import { findAnswers, findCounting } from './answers.ts';
import {
  type ChatRef,
  cutHistory,
  findAsking,
  findKey,
  findMessage,
  findReplyId,
  getMessageId,
  isRun,
  NEVER,
  readContinued,
  readMessages,
  requireCreated,
  requireSize,
  stopWaiting,
} from './chat-history.ts';
import { type ChatPage, type ChatPageRequest, listChats, removeChat } from './chat-list.ts';
import type {
  ChatAnswer,
  ChatAnswers,
  ChatMessage,
  ChatParts,
  ChatStop,
  ChatStopReceipt,
  Continued,
} from './chat-types.ts';
import { HISTORY_AGENT } from './history-work.ts';
import { answerQuestion, answerReply, areOpen, checkAnswers } from './questions.ts';
import { rollBack } from './roll-back.ts';
import { isRepeated, isStale } from './stale-answers.ts';
import type { ReplyEvent } from './ui/chunk-writer.ts';
import { toUserMessage } from './ui/ui-messages.ts';
import { UiTranslator } from './ui/ui-translator.ts';
import { type OpenAnswer, type ShownQuestions, stopReply, waitForAnswer } from './waiting-reply.ts';

/** The page's name for a run, as the store finds its task. */
type RunName = ConversationRef & { readonly key: string };

/** Tasks that only change the history, or hold a name, may be newer than the last reply. */
const RECENT_TASKS = 5;

/** Chats in a task store. Every protocol adapter uses these. Each chat is a conversation of its tenant. */
export class Chat {
  readonly #parts: ChatParts;

  constructor(parts: ChatParts) {
    this.#parts = parts;
  }

  /** Stores a message and starts a reply. A message that was stopped before it arrived gets no reply. */
  async send(who: Principal, { chatId, message, runId, regenerate = false, sent }: ChatMessage): Promise<TaskRef> {
    const { isReply, policy, history } = this.#parts;
    const input = requireSize(isReply ? message : toUserMessage(message));
    // Before anything is stored. The task itself removes what is replied to again, in the same step as it saves the message.
    await history?.read({ chatId, principal: who });
    // The newer message decides about the reply in progress, and then waits until the history is cut.
    if (regenerate && history === undefined) await cutHistory(this.#parts, { who, chatId }, message.id);
    const key = runId ?? (regenerate ? undefined : await findKey(this.#parts, { who, chatId }, message));
    const about = { chatId, runId: key, sent, regenerate: regenerate && history !== undefined };
    const effective = regenerate ? (history ? 'replace' : 'queue') : policy;
    const keeps = await keepsQuestions(who, { ...who, conversation: chatId, policy: effective }, this.#parts);
    return this.#start({ ...this.#taskFor(who, about, input), keepsQuestions: keeps }, effective);
  }

  /** Continues a message with what a page has answered, and records who did. */
  async answer(who: Principal, { given, ...request }: ChatAnswers): Promise<Continued> {
    const isApproval = given.answers.some((answer) => 'approvalId' in answer);
    if (isApproval && !may(who, 'approve')) throw new HttpError(403, lacksRight('approve'));
    if (!this.#parts.isReply) return answerReply(this.#parts, who, { chatId: request.chatId, given });
    const chat = { who, chatId: request.chatId };
    const active = await this.#findContinuation({ tenant: who.tenant, chatId: request.chatId }, given.messageId);
    if (active !== undefined) return { ref: active, isOwn: isRepeated(findAnswers(active)!, given) };
    const message = await findMessage(this.#parts, chat, given.messageId);
    const counting = message ? findCounting(message, given, this.#parts.isElsewhere) : [];
    if (counting.length === 0) {
      const isOver = message !== undefined && isStale(message, given);
      const shown = isOver ? await this.messages(who, chat.chatId) : [];
      return { isOwn: false, message: shown.find(({ id }) => id === given.messageId) };
    }
    const answers = counting.map(({ answer }) => answer);
    const { startedBy, audit } = await checkAnswers(this.#parts, chat, { message: message!, answers });
    const task = { ...this.#taskFor(who, request, requireSize({ ...given, answers })), startedBy };
    const ref = await this.#start(task, 'queue');
    audit('accepted');
    return { ref, isOwn: true };
  }

  #taskFor(who: Principal, { chatId, runId, sent, regenerate }: Omit<ChatMessage, 'message'>, input: Json): NewTask {
    const { agent, isReply } = this.#parts;
    const task = { tenant: who.tenant, agent, conversation: chatId, input, startedBy: who.name || undefined };
    const context = { ...sent, ...(regenerate && { regenerate }), principal: who } as unknown as AppContext;
    return { ...task, ...(runId !== undefined && { key: runId }), ...(isReply && { context }) };
  }

  /** Returns the task in progress that continues a message. */
  async #findContinuation(
    chat: { tenant: string; chatId: string },
    messageId: string,
  ): Promise<TaskRecord | undefined> {
    const active = await this.active(chat, chat.chatId);
    const task = active && (await this.#parts.store.get(active));
    return task !== undefined && findAnswers(task)?.messageId === messageId ? task : undefined;
  }

  /** Returns the message that asks about a call, and ended its turn with it. */
  findAsking(chat: ChatRef, approvalId: string): Promise<UIMessage | undefined> {
    return findAsking(this.#parts, chat, approvalId);
  }

  /** Returns the reply in progress, if there is one. */
  async active({ tenant }: Pick<Principal, 'tenant'>, chatId: string): Promise<TaskRef | undefined> {
    const record = await this.#parts.store.conversation({ tenant, conversation: chatId });
    const id = record?.current;
    if (id === undefined) return undefined;
    const task = await this.#parts.store.get({ tenant, id });
    return task === undefined || task.agent === HISTORY_AGENT || isFinalStatus(task.status)
      ? undefined
      : { tenant, id };
  }

  /**
   * Returns the reply to stream to a page that shows this message last: the one in progress, or one that ended before
   * the page asked, if the page has not seen its end.
   */
  async missed(who: Principal, chatId: string, last: { id: string; isPartial: boolean }): Promise<TaskRef | undefined> {
    const active = await this.active(who, chatId);
    if (active !== undefined) return active;
    const { store, agent } = this.#parts;
    const { tenant } = who;
    const { tasks } = await store.list({ tenant, conversation: chatId, limit: RECENT_TASKS });
    const newest = tasks.find((task) => task.agent === agent && isRun(task));
    const task = newest && (await store.get(newest));
    if (task === undefined) return undefined;
    const asked = task.inputs.at(-1) as { id?: string } | undefined;
    const isMissed = last.id === (last.isPartial ? getMessageId(task) : asked?.id);
    return isMissed ? { tenant, id: task.id } : undefined;
  }

  /** Returns the chat as a page shows it when it is opened. The reply in progress is streamed. */
  messages(who: Principal, chatId: string): Promise<readonly UIMessage[]> {
    return readMessages(this.#parts, { who, chatId });
  }

  /** Lists the chats that the store keeps. */
  list(who: Principal, page: ChatPageRequest): Promise<ChatPage> {
    return listChats(this.#parts, who, page);
  }

  /** Stops what a chat does, and removes it from the store. Resolves with whether nothing is left. */
  remove(who: Principal, chatId: string): Promise<boolean> {
    return removeChat(this.#parts, { who, chatId });
  }

  /**
   * Streams a reply from its start. A reader that leaves stops nothing. A page that `isAsking` for the reply has the
   * message that is continued; to any other it is streamed whole.
   */
  async *stream(ref: TaskRef, signal: AbortSignal, isAsking = false): AsyncGenerator<UIMessageChunk, undefined> {
    const { store, describeError, isReply } = this.#parts;
    const task = isReply ? await store.get(ref) : undefined;
    const translator = new UiTranslator(task ? getMessageId(task) : ref.id, { describeError });
    // The loop's own start has its metadata.
    if (!isReply || !isAsking) yield* translator.start();
    const continued = task && !isAsking ? await readContinued(this.#parts, task) : undefined;
    yield* continued?.chunks ?? [];
    // It has its own answers, and pages of AI SDK 6 know no such chunk.
    const known = new Set(
      task && isAsking ? findAnswers(task)?.answers.map((one) => 'approvalId' in one && one.approvalId) : [],
    );
    for await (const seen of followTask<ReplyEvent>(store, ref, { signal })) {
      const chunks = seen.type === 'entry' ? translator.translate(seen.event) : translator.end(seen.task);
      if (seen.type === 'entry' && continued?.isWhole === true) continue;
      yield* chunks.filter((chunk) => chunk.type !== 'tool-approval-response' || !known.has(chunk.approvalId));
      // A page sends answers only when the stream has ended. Its answer continues the message.
      const { awaited } = translator;
      if (awaited.length === 0 || !(await areOpen(store, ref, awaited))) continue;
      yield* translator.pause();
      return undefined;
    }
    return undefined;
  }

  /** Opens a stream that yields once, when one of the questions that a page shows is answered or closed. */
  async answered(who: Principal, asked: ShownQuestions): Promise<OpenAnswer | undefined> {
    const ref = this.#parts.isReply ? undefined : await this.find(who, asked);
    return ref && ((signal) => waitForAnswer(this.#parts.store, { ref, questions: asked.questions }, signal));
  }

  /** Answers a question. Only a client that has read it knows its id. */
  approve(who: Principal, answer: ChatAnswer): Promise<AnswerReceipt> {
    return answerQuestion(this.#parts, who, answer);
  }

  /** Returns the questions of a reply so far, by id. */
  questions(ref: TaskRef): ReturnType<typeof readQuestions> {
    return readQuestions(this.#parts.store, ref);
  }

  /**
   * Gives a reply in progress another name, by which it can be found and stopped. Returns whether it was stopped under
   * this name before.
   */
  async rename(ref: TaskRef, { chatId, runId }: { chatId: string; runId: string }): Promise<boolean> {
    const reason = { kind: 'merged', via: 'chat', message: `taken over by ${ref.id}` };
    if (await this.#takeName({ tenant: ref.tenant, conversation: chatId, key: runId }, ref.id, reason)) return false;
    return (await this.find(ref, { chatId, runId }))?.id !== ref.id;
  }

  /** Returns the record of a reply. */
  task(ref: TaskRef): Promise<TaskRecord | undefined> {
    return this.#parts.store.get(ref);
  }

  /** Stops a reply, the chat's background tasks, or both, in any process. Messages and results are kept. */
  async stop(principal: Principal, stop: ChatStop): Promise<ChatStopReceipt> {
    const { chatId, via, reason: message, scope = 'foreground' } = stop;
    const reason = { kind: 'user', by: principal.name, via, ...(message !== undefined && { message }) };
    // Stop the reply first: once it is stopped, it starts no more background tasks.
    const receipt = scope === 'background' ? undefined : await this.#stopReply(principal, stop, reason);
    if (scope === 'foreground') return receipt!;
    const chat = { tenant: principal.tenant, conversation: chatId };
    const answers = await cancelBackground(this.#parts.store, chat, reason);
    const answer = answers.find((one) => one === 'accepted') ?? answers[0] ?? 'idle';
    return { result: answer, ...receipt, background: answers.filter((one) => one === 'accepted').length };
  }

  async #stopReply(principal: Principal, stop: ChatStop, reason: CancelReasonInit): Promise<ChatStopReceipt> {
    const { store } = this.#parts;
    const { tenant } = principal;
    const { chatId, runId, messageId } = stop;
    const isNamed = runId !== undefined || messageId !== undefined;
    let task: TaskRef | undefined = isNamed ? await this.find(principal, stop) : await this.active(principal, chatId);
    if (task === undefined && runId !== undefined) {
      if (await this.#takeName({ tenant, conversation: chatId, key: runId }, null, reason))
        return {
          ...(await stopWaiting(this.#parts, { chatId, messageId, who: principal }, reason)),
          result: 'recorded',
        };
      // Its message has arrived in between.
      task = await this.find(principal, stop);
    }
    const ref = task && { tenant, id: task.id };
    const chat = { who: principal, chatId };
    const isRead = runId !== undefined || stop.rollback === true;
    const receipt = ref ? await stopReply(this.#parts, { ...chat, ref, isRead }, reason) : { result: 'idle' as const };
    if (stop.rollback === true) return { ...receipt, ...(await rollBack(this.#parts, { ...chat, ref }, reason)) };
    const ended = ref && receipt.result === 'too-late' ? await store.get(ref) : undefined;
    if (ref !== undefined && ended === undefined) return receipt;
    const waiting = { ...chat, messageId: ended ? getMessageId(ended) : messageId };
    return { ...receipt, ...(await stopWaiting(this.#parts, waiting, reason)) };
  }

  /** Finds a run of a chat by either of its names. */
  async find(
    { tenant }: Pick<Principal, 'tenant'>,
    { chatId, runId, messageId }: Pick<ChatStop, 'chatId' | 'runId' | 'messageId'>,
  ): Promise<TaskRecord | undefined> {
    const { store } = this.#parts;
    const found = runId === undefined ? undefined : await store.find({ tenant, key: runId, conversation: chatId });
    // The id of a reply's message is the id of its task.
    const id = found === undefined ? messageId : findReplyId(found);
    const continued = found || id === undefined ? undefined : await this.#findContinuation({ tenant, chatId }, id);
    const task = continued ?? (id === undefined ? found : await store.get({ tenant, id }));
    return task?.conversation === chatId ? task : undefined;
  }

  /**
   * Takes the name of a run: the run is created and cancelled before it can start, so a message that arrives later finds it
   * ended. `reply` is the task that has the name from now on. Returns whether the name was free.
   */
  async #takeName(name: RunName, reply: string | null, reason: CancelReasonInit): Promise<boolean> {
    const { store, agent } = this.#parts;
    const run = { ...name, agent, input: reply, notBefore: NEVER };
    const { result, task } = requireCreated(await store.create(run, { policy: 'queue' }));
    if (result === 'created') await store.cancel(task, reason, { mode: 'now' });
    return result === 'created';
  }

  async #start(task: Parameters<Runner['start']>[0], policy: Policy): Promise<TaskRef> {
    const { store, runner, isRemote } = this.#parts;
    if (!isRemote) {
      const { tenant, id, response } = await runner.start(task, { policy });
      this.#parts.waitUntil?.(response.catch(() => {}));
      return { tenant, id };
    }
    const { id } = requireCreated(await store.create(task, { policy })).task;
    return { tenant: task.tenant, id };
  }
}
