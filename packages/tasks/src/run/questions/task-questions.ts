import type { RunOptions } from '@whoa/core';
import type { ApprovalAnswer, Ask } from '@whoa/core/approval';
import { retryLostResponse } from '../../delivery/retry-lost-response.ts';
import type { WorkerContext } from '../../delivery/worker-context.ts';
import type { ClaimRef, Orders } from '../../delivery/worker-store.ts';
import { QuestionRefusedError } from '../../errors.ts';
import { createQuestionId, type Question, type QuestionClose, type QuestionKind } from '../../question.ts';
import type { Journal } from '../journal/journal.ts';
import {
  compareShown,
  isDecided,
  toApproval,
  toCallEvents,
  toCallResult,
  toDigest,
  toHash,
  toKind,
  toQuestion,
  toUnusedClose,
} from './answers.ts';
import type { AskingTask } from './approvals.ts';
import { type AskedAgain, type NewlyAsked, UnreadMessage, type Wait, type Waiting } from './asking.ts';
import { RememberedAnswers } from './remembered.ts';

interface TaskQuestionsOptions {
  readonly context: WorkerContext;
  readonly claim: ClaimRef;
  readonly tenant: string;
  readonly journal: Journal;
  /** How long an answer counts. */
  readonly timeoutMs: number;
}

const GIVEN_UP: ApprovalAnswer = { decision: 'no', why: 'cancelled before a user answered' };

/** The questions of one attempt at a task: asks them through the store, and acts on what the store says about them. */
export class TaskQuestions implements AskingTask {
  readonly remembered: RememberedAnswers;
  /** Called when a question starts or stops waiting. */
  onChange: () => void = () => {};
  /** Called when a sub-agent may not ask because of an unread message, with the id of its call. */
  onUnread: (callId: string) => void = () => {};
  /** The last order that was read. */
  orderNumber: number = 0;
  readonly #options: TaskQuestionsOptions;
  /** What the worker must act on or wait for, by id. */
  #live = new Map<string, Question>();
  readonly #waiting = new Map<string, Wait>();
  /** How many questions are open in the store. */
  #open = 0;
  /** Called when there are fewer. */
  readonly #onFewer: (() => void)[] = [];
  /** Questions that are being written. */
  readonly #publishing = new Set<NewlyAsked>();
  /** The first question about each call, or its promise while it is being written. */
  readonly #asked = new Map<string, string | Promise<string>>();
  /** Questions that were decided and whose call has not been journaled since, by call. */
  readonly #decided = new Map<string, QuestionClose>();
  /** The digests of what was approved, by call. */
  readonly #approved = new Map<string, string>();
  readonly isApproved = (callId: string): boolean => this.#approved.has(callId);
  readonly #endedCalls = new Set<string>();
  readonly #closing = new Set<string>();

  constructor(options: TaskQuestionsOptions) {
    this.#options = options;
    this.remembered = new RememberedAnswers(options.journal);
    this.remembered.onSet = (key) => {
      for (const [id, { key: waiting }] of this.#waiting) if (waiting === key) this.#cover(id, key);
    };
  }

  /** Whether calls wait here, and all of their questions can be answered. */
  get isWaiting(): boolean {
    return this.#waiting.size > 0 && this.#publishing.size === 0;
  }

  /** Whether a call waits here for an answer. */
  isWaitingFor(callId: string): boolean {
    return [...this.#waiting.values()].some((one) => one.callId === callId);
  }

  /** Whether a call waits for an answer, of this kind if one is given. */
  isAsked(callId: string, kind?: QuestionKind): boolean {
    return this.#findLive(callId, kind) !== undefined;
  }

  /** Whether a client has been asked for the result of a call, or may be: its question may be on its way to the store. */
  mayBeInClient(callId: string): boolean {
    const isMeant = ({ kind, question }: NewlyAsked): boolean => kind === 'client' && question.callId === callId;
    return this.isAsked(callId, 'client') || [...this.#publishing].some(isMeant);
  }

  /** Returns the digest of what a user has approved. */
  findShown(callId: string): string | undefined {
    return this.#approved.get(callId);
  }

  /** A call that an earlier worker has started may run again if it still is what was approved. */
  allowAgain(callId: string, shown: string): void {
    this.#approved.set(callId, shown);
  }

  /** Acts on orders of the store. They list all questions, so a missed one is not lost. */
  applyOrders({ orderNumber, questions = [] }: Pick<Orders, 'orderNumber' | 'questions'>): void {
    // Ignore older orders: responses can arrive out of order.
    if (orderNumber < this.orderNumber) return;
    // Orders with the same number differ only in what this worker has asked and closed: the older ones may arrive later.
    const known = orderNumber === this.orderNumber ? this.#live : [];
    this.orderNumber = orderNumber;
    this.#live = new Map([...known, ...questions.map((question) => [question.id, question] as const)]);
    for (const question of questions) if (isDecided(question)) this.#waiting.get(question.id)?.settle(question);
    this.#closeEnded();
    const open = questions.filter((question) => !isDecided(question)).length;
    if (open < this.#open) for (const retry of this.#onFewer.splice(0)) retry();
    this.#open = open;
  }

  readonly ask: Ask = async (question, { signal }, asking) => {
    const { callId } = question;
    const { request } = asking;
    const approved = this.#approved.get(callId);
    if (approved !== undefined) return compareShown(approved, toDigest(question, request));
    const live = this.#findLive(callId, 'approve');
    const next = toKind(request.tool);
    // It was approved: the next question about a call closes the one before it.
    if (live === undefined && next !== undefined && this.isAsked(callId, next)) return { decision: 'yes' };
    const first = { question, request, kind: 'approve', signal } as const;
    const asked = live?.id ?? this.#publish({ ...first, closes: this.takeCloses(callId) });
    this.#asked.set(callId, asked);
    try {
      return await this.#askUntilDecided(await asked, { question, asking, signal });
    } catch (error) {
      if (error instanceof UnreadMessage) return { decision: 'no', why: error.message };
      throw error;
    }
  };

  async #askUntilDecided(first: string, { question: { callId }, asking, signal }: AskedAgain): Promise<ApprovalAnswer> {
    const { request } = asking;
    for (let id = first; ; ) {
      const { key } = asking;
      if (key !== undefined) this.#cover(id, key);
      const decided = await this.#wait({ id, callId, key, signal });
      if (decided === undefined) return GIVEN_UP;
      this.#decided.set(callId, { id, why: decided.closed === undefined ? 'answered' : 'journaled' });
      const answer = toApproval(decided);
      const isKept = answer.decision === 'always' || answer.decision === 'never';
      if (key !== undefined && isKept) this.remembered.recordGiver(key, decided.answer!.by);
      if (answer.decision === 'no' || answer.decision === 'never') return answer;
      const current = await asking.describeAgain();
      if (toDigest(current, request) === decided.shown) {
        this.#approved.set(callId, decided.shown);
        return answer;
      }
      this.#decided.delete(callId);
      const closes = [{ id, why: 'outdated' } as const];
      id = await this.#publish({ question: current, request, kind: 'approve', closes, signal });
    }
  }

  /** Asks for the result of a call that has no code, and waits for it. */
  readonly answerCall: NonNullable<RunOptions['answer']> = async (request, { signal }) => {
    const { call, tool } = request;
    const kind = toKind(tool)!;
    const publish = () =>
      this.#publish({ question: toQuestion(request), request, kind, closes: this.takeCloses(call.id), signal });
    const id = this.#findLive(call.id, kind)?.id ?? (await publish());
    const decided = await this.#wait({ id, callId: call.id, signal });
    if (decided === undefined) throw new Error(GIVEN_UP.why);
    this.#decided.set(call.id, { id, why: decided.closed === undefined ? 'answered' : 'journaled' });
    return toCallResult(decided);
  };

  async answer(callId: string, value: ApprovalAnswer, by?: string): Promise<void> {
    const { context, tenant } = this.#options;
    const id = await this.#asked.get(callId);
    if (id === undefined) return;
    await context.store.answer({ tenant, id }, { value: { ...value }, by });
  }

  /** Returns what a batch closes that starts or ends a call, or asks about it again: everything that is not closed yet. */
  takeCloses(callId: string): readonly QuestionClose[] {
    const decided = this.#decided.get(callId);
    this.#decided.delete(callId);
    const others = [...this.#live.values()].filter((one) => one.callId === callId && one.id !== decided?.id);
    const all = [...(decided ? [decided] : []), ...others.map((one) => ({ id: one.id, why: toUnusedClose(one) }))];
    const closes = all.filter(({ id }) => !this.#closing.has(id));
    for (const { id } of closes) this.#closing.add(id);
    return closes;
  }

  /** The store has not closed these: one of them is not as it was known here. They are closed again later. */
  reopen(closes: readonly QuestionClose[]): void {
    for (const close of closes) {
      this.#closing.delete(close.id);
      const callId = this.#live.get(close.id)?.callId;
      if (callId !== undefined && close.why === 'answered') this.#decided.set(callId, close);
    }
  }

  /** A call is over, and with it the calls inside it: their questions need no answer. */
  endCall(callId: string): void {
    // Even if its question is not live yet: it may be on its way to the store.
    this.#endedCalls.add(callId);
    this.#options.journal.closeQuestions(this.takeCloses(callId));
    this.#closeEnded();
  }

  #findLive(callId: string, kind?: QuestionKind): Question | undefined {
    const isMeant = (one: Question): boolean =>
      one.callId === callId && !this.#closing.has(one.id) && (kind ?? one.kind) === one.kind;
    return [...this.#live.values()].find(isMeant);
  }

  /** Answers an open question that an earlier `always` or `never` covers, in the name of who gave that. */
  #cover(id: string, key: string): void {
    const isYes = this.remembered.get(key);
    if (isYes === undefined) return;
    const { context, tenant } = this.#options;
    const value = { decision: isYes ? 'yes' : 'no', why: 'an earlier answer covers it' };
    const given = { value, by: this.remembered.findGiver(key) };
    // If another answer came first, that one counts.
    const answer = () => context.store.answer({ tenant, id }, given, { nonce: toHash(`${id} is covered`) });
    context.background(retryLostResponse(answer, context));
  }

  /** Writes a question to the journal, where clients read it, and to the task, in one step. Waits while too many are open. */
  async #publish(asked: NewlyAsked): Promise<string> {
    this.#publishing.add(asked);
    try {
      for (;;) {
        const id = await this.#tryPublish(asked).catch((error: unknown) => {
          const why = error instanceof QuestionRefusedError ? error.why : undefined;
          if (why === 'unread') throw this.#refuse(asked.question.callId);
          if (why !== 'full' || asked.signal.aborted) throw error;
        });
        if (id !== undefined) return id;
        await new Promise<void>((resolve) => {
          this.#onFewer.push(resolve);
          asked.signal.addEventListener('abort', () => resolve(), { once: true });
        });
      }
    } finally {
      this.#publishing.delete(asked);
    }
  }

  /** The run has the message by now: the orders of the store came before this. */
  #refuse(callId: string): UnreadMessage {
    const [outer = '', ...inner] = callId.split('/');
    if (inner.length > 0) this.onUnread(outer);
    return new UnreadMessage();
  }

  async #tryPublish({ question, request, kind, closes = [] }: NewlyAsked): Promise<string> {
    const { context, claim, journal, timeoutMs } = this.#options;
    const { world } = context;
    // A random id: only a client that has read the question can answer it.
    const id = createQuestionId(claim.id, world.createId());
    const about = { id, at: world.clock.now(), question };
    const { callId } = question;
    const shown = toDigest(question, request);
    for (const close of closes) this.#closing.add(close.id);
    const events = kind === 'approve' ? [{ type: 'approval-question', ...about }] : toCallEvents(request, kind, about);
    await journal.writeWith(events, { asks: [{ id, callId, kind, shown, expiresMs: timeoutMs }], closes });
    return id;
  }

  /** Resolves when a question was answered or closed; with `undefined` when its call was stopped. */
  #wait({ id, signal, ...about }: Waiting): Promise<Question | undefined> {
    const known = this.#live.get(id);
    if (known !== undefined && isDecided(known)) return Promise.resolve(known);
    if (signal.aborted) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const settle = (question: Question | undefined): void => {
        this.#waiting.delete(id);
        signal.removeEventListener('abort', stop);
        this.onChange();
        resolve(question);
      };
      const stop = (): void => settle(undefined);
      this.#waiting.set(id, { ...about, settle });
      signal.addEventListener('abort', stop, { once: true });
      this.onChange();
    });
  }

  /** Closes what no call waits for any more. */
  #closeEnded(): void {
    const { journal } = this.#options;
    for (const { callId } of this.#live.values()) {
      const path = callId.split('/').map((_, index, ids) => ids.slice(0, index + 1).join('/'));
      const closes = path.some((one) => this.#endedCalls.has(one)) ? this.takeCloses(callId) : [];
      for (const close of closes) journal.add({ type: 'question-closed', callId, ...close });
      journal.closeQuestions(closes);
      if (closes.length > 0) journal.scheduleFlush();
    }
  }
}
