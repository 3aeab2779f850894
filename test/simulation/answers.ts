import { isDeepStrictEqual } from 'node:util';
import type { CallResult, Json, Message } from '@whoa/core';
import type { AnswerReceipt, TaskRecord } from '@whoa/tasks';
import type { ClaimRef } from '@whoa/tasks/store';
import type { Batch, Orders } from '../../packages/tasks/src/delivery/worker-store.ts';
import type { QuestionKind } from '../../packages/tasks/src/question.ts';
import { findAsked } from './approvals.ts';
import type { SimulationContext } from './context.ts';
import type { Commit } from './network.ts';

type Asking = { readonly type: string; readonly id: string; readonly kind?: QuestionKind };
type Value = { readonly answer?: Json; readonly error?: string } | { readonly decision: 'yes' | 'no' } | null;

interface Asked {
  readonly task: string;
  readonly callId: string;
  readonly kind: 'answer' | 'client';
  /** The answer that the store accepted. */
  accepted?: Value;
  isAnswered?: boolean;
  /** The reasons given to answers that were too late, before any answer had been accepted. */
  readonly reasons: Set<string>;
}

type Result = Pick<CallResult, 'callId' | 'state'> & { readonly content: string };
type Ref = { readonly tenant: string; readonly id: string };

const TENANT = 'acme';
/** The calls of these tools are answered by a person, or by a page: twice, once after an approval. */
export const ANSWERED_TOOLS = [
  { name: 'ask', answeredBy: 'user', effects: 'read' },
  { name: 'locate', answeredBy: 'client', effects: 'read' },
  { name: 'open', answeredBy: 'client', effects: 'write' },
] as const;

/** Accepts `{ n: number }`. */
export const answerSchema = {
  '~standard': {
    version: 1,
    vendor: 'simulation',
    validate: (value: unknown) =>
      typeof (value as { n?: unknown } | null)?.n === 'number' ? { value } : { issues: [{ message: 'not a number' }] },
  },
};

/** People and pages whose answers are the results of calls: late, twice, two at the same time, wrong, and after a cancel. */
export class Answers {
  readonly #context: SimulationContext;
  readonly #asked = new Map<string, Asked>();
  /** Each call's question. */
  readonly #byCall = new Map<string, string>();
  /** The results that models saw, by call. */
  readonly #seen = new Map<string, Result[]>();
  /** Tasks whose conversation got a newer message. */
  readonly #interrupted = new Set<string>();
  /** Questions that people have read. */
  readonly #read = new Set<string>();
  #answers = 0;

  constructor(context: SimulationContext) {
    this.#context = context;
  }

  plan(): void {
    const { random, workMs } = this.#context;
    const count = 1 + random.below(2);
    for (let i = 0; i < count; i++) this.#context.userAt(random.below(workMs), () => this.#createTask(i));
  }

  committed({ name, args, answer, error }: Commit): void {
    if (error !== undefined) return;
    if (name === 'append') this.#appended(args[0] as ClaimRef, args[1] as Batch, answer as Orders);
    if (name === 'answer') this.#received(args[0] as Ref, args[1] as { value: Value }, answer as AnswerReceipt);
  }

  /** A model is called with this history. */
  sawHistory(history: readonly Message[]): void {
    for (const message of history) {
      if (message.role !== 'tool') continue;
      const { callId, state } = message;
      // These tools return only text.
      const content = message.content as string;
      const seen = this.#seen.get(callId) ?? [];
      this.#seen.set(callId, seen);
      if (!seen.some((one) => one.content === content && one.state === state)) seen.push({ callId, state, content });
    }
  }

  /** Every accepted answer is the result of its call, once; a call without one has the state that is known. */
  async judge(): Promise<void> {
    for (const [question, asked] of this.#asked) {
      const ref = { tenant: TENANT, id: asked.task };
      const task = await this.#context.store.get(ref);
      if (task?.outcome === undefined) continue;
      const journaled = (await this.#readResults(ref)).filter(({ callId }) => callId === asked.callId);
      if (journaled.length > 1) this.#broken(asked, 'has more than one result');
      if (journaled.length === 0 && task.status === 'success') this.#broken(asked, 'has no result');
      const isStopped = task.status !== 'success';
      const results = [...journaled, ...(this.#seen.get(asked.callId) ?? [])];
      for (const result of results) this.#judgeResult(asked, result, isStopped);
      const report = task.outcome.stopReport as { calls?: readonly Result[] } | undefined;
      const reported = report?.calls?.find(({ callId }) => callId === asked.callId);
      if (reported !== undefined && journaled.length === 0) this.#judgeUnanswered(asked, reported);
      this.#judgeQuestion(question, asked, task);
    }
  }

  #judgeResult(asked: Asked, result: Result, isStopped: boolean): void {
    if (!asked.isAnswered) {
      this.#judgeUnanswered(asked, result);
      return;
    }
    const expected = toExpected(asked);
    const isExpected = result.state === expected.state && result.content.startsWith(expected.text);
    if (isExpected) return;
    const said = `${result.state}: ${result.content}`;
    // A stop may come between the answer and its effect.
    if (isStopped && result.state === toUnansweredState(asked)) return;
    this.#broken(asked, `was answered with ${JSON.stringify(asked.accepted)}, and its result is ${said}`);
  }

  #judgeUnanswered(asked: Asked, { state, content = '' }: { readonly state: string; readonly content?: string }): void {
    if (state === toUnansweredState(asked)) return;
    this.#broken(asked, `has no answer that counts, and its result is ${state}: ${content}`);
  }

  #judgeQuestion(question: string, asked: Asked, { id, status, questions }: TaskRecord): void {
    const { closed } = questions?.find((one) => one.id === question) ?? {};
    for (const why of asked.reasons)
      if (why !== closed?.why) this.#broken(asked, `was refused as ${why}, and closed as ${closed?.why}`);
    if (status !== 'success') return;
    if (asked.isAnswered && closed?.why !== 'answered')
      this.#broken(asked, `was answered and closed as ${closed?.why}`);
    const mayClose = closed?.why === 'expired' || (closed?.why === 'withdrawn' && this.#interrupted.has(id));
    if (!asked.isAnswered && !mayClose) this.#broken(asked, `was not answered, and closed as ${closed?.why}`);
  }

  async #readResults(ref: Ref): Promise<Result[]> {
    const results: Result[] = [];
    for (let after = 0; ; ) {
      const page = await this.#context.store.read(ref, { after });
      if ((page.at(-1)?.position ?? 0) <= after) return results;
      after = page.at(-1)!.position;
      for (const { event } of page as unknown as readonly { event: { type: string; result: Result } }[])
        if (event.type === 'call-end') results.push(event.result);
    }
  }

  async #createTask(i: number): Promise<void> {
    const { random, client, retryWhileUnavailable } = this.#context;
    const conversation = random.oneIn(4) ? `asked ${i}` : undefined;
    const create = (name: string, policy?: 'queue' | 'steer' | 'replace') => {
      const task = { tenant: TENANT, agent: 'asking', input: name, key: name, conversation };
      return retryWhileUnavailable(() => client.create(task, { nonce: `${name} nonce`, ...(policy && { policy }) }));
    };
    const receipt = await create(`asking ${i}`);
    if (receipt?.result !== 'created') return;
    const ref = { tenant: TENANT, id: receipt.task.id };
    this.#context.attempt(() => this.#attend(ref));
    if (conversation !== undefined) {
      this.#context.userAt(random.below(6_000), async () => {
        this.#interrupted.add(ref.id);
        const next = await create(`asking ${i} next`, random.pick(['queue', 'steer', 'replace'] as const));
        if (next?.result === 'created') this.#context.attempt(() => this.#attend({ ...ref, id: next.task.id }));
      });
    } else if (random.oneIn(4)) {
      const mode = random.pick(['graceful', 'now', 'kill'] as const);
      this.#context.userAt(random.below(6_000), () =>
        retryWhileUnavailable(() => client.cancel(ref, { by: `asking ${i}` }, { mode })),
      );
    }
  }

  /** Reads a task's questions as they come, and answers each, so that none waits for ever. */
  async #attend(ref: Ref): Promise<void> {
    const { process, store } = this.#context.connectClient(`page ${ref.id}`);
    for await (const one of this.#context.tasks.followTask<Asking>(store, ref, { world: process.world })) {
      if (one.type !== 'entry') continue;
      const { type, id, kind } = one.event as Asking;
      if (this.#read.has(id)) continue;
      this.#read.add(id);
      if (type === 'question-asked') this.#planAnswers({ ...ref, id }, () => this.#pickValue(kind!));
      if (type === 'approval-question')
        this.#planAnswers({ ...ref, id }, () => ({ decision: this.#context.random.pick(['yes', 'yes', 'yes', 'no']) }));
    }
  }

  #planAnswers(to: Ref, pickValue: () => Value): void {
    const { random } = this.#context;
    const inMs = random.oneIn(4) ? random.below(9_000) : random.below(800);
    const send = (by: string, value = pickValue(), tenant = to.tenant) => {
      const answer = { value, by };
      const nonce = `${to.id} ${by} ${tenant}`;
      return () =>
        this.#context.retryWhileUnavailable(() => this.#context.client.answer({ ...to, tenant }, answer, { nonce }));
    };
    const ann = send('ann');
    this.#context.userAt(inMs, ann);
    if (random.oneIn(3)) this.#context.userAt(inMs + random.below(1_000), ann);
    // Two people at the same moment, and one long after.
    if (random.oneIn(3)) this.#context.userAt(inMs, send('bob'));
    if (random.oneIn(4)) this.#context.userAt(inMs + random.below(9_000), send('eve'));
    if (random.oneIn(5)) this.#context.userAt(random.below(500), send('stranger', pickValue(), 'globex'));
  }

  /** Every value is unique, so that each result shows whose answer it is. */
  #pickValue(kind: QuestionKind): Value {
    const n = ++this.#answers;
    const isRight = !this.#context.random.oneIn(4);
    if (isRight) return { answer: kind === 'client' && n % 2 === 0 ? `seen ${n}` : { n } };
    return this.#context.random.pick([{ answer: { n: `wrong ${n}` } }, { error: `failed ${n}` }, null]);
  }

  #appended({ id: task }: ClaimRef, { asks = [] }: Batch, { questions = [] }: Orders): void {
    for (const { id, callId, kind } of findAsked(asks, questions)) {
      if (kind === 'approve') continue;
      const call = `${task} ${callId}`;
      const before = this.#byCall.get(call) ?? id;
      if (before !== id) this.#broken({ task, callId }, 'was asked again under another id');
      this.#byCall.set(call, id);
      if (!this.#asked.has(id)) this.#asked.set(id, { task, callId, kind, reasons: new Set() });
    }
  }

  #received({ id, tenant }: Ref, { value }: { readonly value: Value }, receipt: AnswerReceipt): void {
    const asked = this.#asked.get(id);
    if (asked === undefined || tenant !== TENANT) return;
    if (receipt.result === 'not-found') this.#broken(asked, 'was asked, and is not found');
    if (receipt.result === 'accepted') {
      if (asked.isAnswered && !isDeepStrictEqual(asked.accepted, value)) this.#broken(asked, 'has two answers');
      asked.isAnswered = true;
      asked.accepted = value;
    }
    if (receipt.result !== 'too-late') return;
    if (!asked.isAnswered) asked.reasons.add(receipt.why);
    else if (receipt.why !== 'answered' || !isDeepStrictEqual(receipt.given?.value, asked.accepted))
      this.#broken(asked, `was refused as ${receipt.why}, and its answer is ${JSON.stringify(asked.accepted)}`);
  }

  #broken({ task, callId }: Pick<Asked, 'task' | 'callId'>, what: string): void {
    this.#context.violations.push({ promise: 'P14', what: `${task}: ${callId} ${what}` });
  }
}

/** The state of a call without an answer: a page may have run it as soon as it was asked. */
function toUnansweredState({ kind }: Asked): 'unknown' | 'not-started' {
  return kind === 'client' ? 'unknown' : 'not-started';
}

function toExpected({ kind, accepted }: Asked): { readonly state: string; readonly text: string } {
  const { answer, error = 'the answer was not understood' } = (accepted ?? {}) as { answer?: Json; error?: string };
  const isWrong = kind === 'answer' && answer !== undefined && typeof (answer as { n: unknown }).n !== 'number';
  const failure = isWrong ? 'the answer does not match its schema' : error;
  if (answer !== undefined && !isWrong)
    return { state: 'finished', text: typeof answer === 'string' ? answer : JSON.stringify(answer) };
  return kind === 'client'
    ? { state: 'failed', text: failure }
    : { state: 'not-started', text: `Not started: ${failure}` };
}
