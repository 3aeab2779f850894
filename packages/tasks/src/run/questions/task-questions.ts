import { createHash } from 'node:crypto';
import type { Json } from '@whoa/core';
import type { ApprovalAnswer, ApprovalQuestion, ApprovalRequest, Ask } from '@whoa/core/approval';
import type { ClaimRef, Orders } from '../../delivery.ts';
import { createQuestionId, type Question, type QuestionClose } from '../../question.ts';
import type { JournalEntry } from '../../task.ts';
import type { ActivityCounter } from '../journal/activity.ts';
import type { Journal } from '../journal/journal.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { AskingTask } from './approvals.ts';

interface TaskQuestionsOptions {
  readonly context: WorkerContext;
  readonly claim: ClaimRef;
  readonly tenant: string;
  readonly journal: Journal;
  readonly activity: ActivityCounter;
  /** How long an answer counts. */
  readonly timeoutMs: number;
}

const GIVEN_UP: ApprovalAnswer = { decision: 'no', why: 'cancelled before a user answered' };
/** What the model gets as the reason if a question was closed without an answer. */
const CLOSED_TEXT: Readonly<Record<string, string>> = {
  expired: 'no one answered in time',
  withdrawn: 'the user wrote a new message instead of answering',
};
const DECISIONS: readonly unknown[] = ['yes', 'no', 'always', 'never'] satisfies ApprovalAnswer['decision'][];

/** The questions of one attempt at a task: asks them through the store, and acts on what the store says about them. */
export class TaskQuestions implements AskingTask {
  readonly remembered: AskingTask['remembered'];
  /** Called when a question starts or stops waiting. */
  onChange: () => void = () => {};
  readonly #options: TaskQuestionsOptions;
  readonly #remembered = new Map<string, boolean>();
  /** What the worker must act on or wait for, by id. */
  #live = new Map<string, Question>();
  readonly #waiting = new Map<string, (question: Question) => void>();
  /** The first question about each call, or its promise while it is being written. */
  readonly #asked = new Map<string, string | Promise<string>>();
  /** Questions that were decided and whose call has not been journaled since, by call. */
  readonly #decided = new Map<string, QuestionClose>();
  readonly #endedCalls = new Set<string>();
  readonly #closing = new Set<string>();
  #orderNumber = 0;

  constructor(options: TaskQuestionsOptions) {
    this.#options = options;
    const kept = this.#remembered;
    this.remembered = {
      get: (key) => kept.get(toHash(key)),
      set: (key, isYes) => {
        kept.set(toHash(key), isYes);
        // Written before the intent of the call it allows: a later worker must know it.
        options.journal.add({ type: 'approval-remembered', key: toHash(key), approved: isYes });
        return kept;
      },
    };
  }

  /** The last order that was read. */
  get orderNumber(): number {
    return this.#orderNumber;
  }

  /** Whether calls of this task wait for an answer that has not come, or was not acted on. */
  get hasLive(): boolean {
    return this.#live.size > 0;
  }

  /** How many calls wait here. */
  get waiting(): number {
    return this.#waiting.size;
  }

  isAsked(callId: string): boolean {
    return this.#findLive(callId) !== undefined;
  }

  /** Reads the `always` and `never` answers that earlier workers were given. */
  restore(past: readonly JournalEntry[]): void {
    for (const { event } of past) {
      const { type, key, approved } = event as { type?: string; key?: string; approved?: boolean };
      if (type === 'approval-remembered' && typeof key === 'string') this.#remembered.set(key, approved === true);
    }
  }

  /** Acts on orders of the store. They list all questions, so a missed one is not lost. */
  applyOrders({ orderNumber, questions = [] }: Pick<Orders, 'orderNumber' | 'questions'>): void {
    // Ignore older orders: responses can arrive out of order.
    if (orderNumber < this.#orderNumber) return;
    this.#orderNumber = orderNumber;
    this.#live = new Map(questions.map((question) => [question.id, question]));
    for (const question of questions) if (isDecided(question)) this.#waiting.get(question.id)?.(question);
    this.#closeEnded();
  }

  readonly ask: Ask = async (question, { signal }, { request, describeAgain }) => {
    const release = this.#options.activity.ask();
    try {
      const asked = this.#findLive(question.callId)?.id ?? this.#publish(question, request);
      this.#asked.set(question.callId, asked);
      let id = await asked;
      for (;;) {
        const decided = await this.#wait(id, signal);
        if (decided === undefined) return GIVEN_UP;
        // Count it as answered before anything else: whoever brought the answer writes down next how many still wait.
        release();
        this.#decided.set(question.callId, { id, why: decided.closed === undefined ? 'answered' : 'journaled' });
        const answer = toAnswer(decided);
        if (answer.decision === 'no' || answer.decision === 'never') return answer;
        const current = await describeAgain();
        if (toDigest(current, request) === decided.shown) return answer;
        id = await this.#publish(current, request, id);
      }
    } finally {
      release();
    }
  };

  async answer(callId: string, value: ApprovalAnswer, by?: string): Promise<void> {
    const { context, tenant } = this.#options;
    const id = await this.#asked.get(callId);
    if (id === undefined) return;
    await context.store.answer({ tenant, id }, { value: { ...value }, by });
  }

  /** Returns what a batch that starts or ends a call closes. */
  takeCloses(callId: string): readonly QuestionClose[] {
    const close = this.#decided.get(callId);
    if (close === undefined) return [];
    this.#decided.delete(callId);
    this.#closing.add(close.id);
    return [close];
  }

  /** A call is over, and with it the calls inside it: their questions need no answer. */
  endCall(callId: string): void {
    for (const { callId: asking } of this.#live.values()) {
      if (`${asking}/`.startsWith(`${callId}/`)) this.#endedCalls.add(asking);
    }
    const closes = this.takeCloses(callId);
    if (closes.length > 0) this.#options.journal.closeQuestions(closes);
    this.#closeEnded();
  }

  #findLive(callId: string): Question | undefined {
    const isMeant = (one: Question): boolean => one.callId === callId && !this.#closing.has(one.id);
    return [...this.#live.values()].find(isMeant);
  }

  /** Writes a question to the journal, where clients read it, and to the task, in one step. */
  async #publish(question: ApprovalQuestion, request: ApprovalRequest, outdated?: string): Promise<string> {
    const { context, claim, journal, timeoutMs } = this.#options;
    const { world } = context;
    // A random id: only a client that has read the question can answer it.
    const id = createQuestionId(claim.id, world.createId());
    const shown = toDigest(question, request);
    const event = { type: 'approval-question', id, at: world.clock.now(), question };
    const asks = [{ id, callId: question.callId, kind: 'approve', shown, expiresMs: timeoutMs } as const];
    const closes = outdated === undefined ? [] : [{ id: outdated, why: 'outdated' } as const];
    for (const close of closes) this.#closing.add(close.id);
    this.#decided.delete(question.callId);
    await journal.writeWith([event], { asks, closes });
    return id;
  }

  /** Resolves when a question was answered or closed; with `undefined` when its call was stopped. */
  #wait(id: string, signal: AbortSignal): Promise<Question | undefined> {
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
      this.#waiting.set(id, settle);
      signal.addEventListener('abort', stop, { once: true });
      this.onChange();
    });
  }

  /** Closes what no call waits for any more. */
  #closeEnded(): void {
    const over = [...this.#live.values()].filter(({ id, callId }) => {
      return this.#endedCalls.has(callId) && !this.#closing.has(id);
    });
    if (over.length === 0) return;
    const { journal } = this.#options;
    for (const question of over) {
      const { id, callId } = question;
      const why = toUnusedClose(question);
      this.#closing.add(id);
      journal.add({ type: 'question-closed', id, callId, why });
      journal.closeQuestions([{ id, why }]);
    }
    journal.scheduleFlush();
  }
}

function isDecided({ answer, closed }: Question): boolean {
  return answer !== undefined || closed !== undefined;
}

/** How a question is closed whose call is over. */
function toUnusedClose({ answer, closed }: Question): QuestionClose['why'] {
  if (closed !== undefined) return 'journaled';
  return answer === undefined ? 'withdrawn' : 'outdated';
}

/** Reads an answer. Only a clear yes is one. */
function toAnswer({ answer, closed }: Question): ApprovalAnswer {
  if (answer === undefined) return { decision: 'no', why: CLOSED_TEXT[closed!.why] ?? `closed: ${closed!.why}` };
  const { decision, why } = (answer.value ?? {}) as { decision?: unknown; why?: unknown };
  if (!DECISIONS.includes(decision)) return { decision: 'no', why: 'the answer was not understood' };
  return { decision: decision as ApprovalAnswer['decision'], ...(typeof why === 'string' && { why }) };
}

/** Identifies what a user was shown. What looks alike can differ, so it includes the input itself. */
function toDigest(
  { callId: _callId, alwaysScope: _always, ...question }: ApprovalQuestion,
  request: ApprovalRequest,
): string {
  return toHash(JSON.stringify([question, request.input as Json]) ?? '');
}

function toHash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
