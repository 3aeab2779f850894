import type { ClaimRef } from '@whoa/tasks/store';
import type { Batch, Orders } from '../../packages/tasks/src/delivery/worker-store.ts';
import type { SimulationContext } from './context.ts';
import type { Commit } from './network.ts';
import type { Effect } from './work.ts';

type Answer = { readonly value: { readonly decision: 'yes' | 'no' | 'always' | 'never' } };
type Question = { readonly type: string; readonly id: string; readonly question: { readonly callId: string } };

const TENANT = 'acme';

/** People with approvals: they answer late, twice, for the wrong call, for another tenant, and after a cancel. */
export class ApprovalScenario {
  readonly #context: SimulationContext;
  /** Questions that the store has, by task and call. */
  readonly #asked = new Set<string>();
  /** The calls that were allowed, and those that were denied. */
  readonly #allowed = new Set<string>();
  readonly #refused = new Set<string>();
  /** Tasks with an "always" answer. */
  readonly #always = new Set<string>();
  readonly #tasks = new Map<string, string>();
  /** The task and the call of each question. */
  readonly #questions = new Map<string, { readonly id: string; readonly callId: string; readonly kind: string }>();
  /** The nonce of the answer that counts, by question. */
  readonly #counted = new Map<string, string>();
  readonly #started = new Set<string>();
  /** Calls that had to ask again, and could not: a message was unread. */
  readonly #unread = new Set<string>();

  constructor(context: SimulationContext) {
    this.#context = context;
  }

  plan(): void {
    const { random, workMs } = this.#context;
    const count = 1 + random.below(2);
    for (let i = 0; i < count; i++) this.#context.userAt(random.below(workMs), () => this.#createTask(i));
  }

  committed({ name, args, answer, error }: Commit): void {
    if (name === 'append' && (error as { why?: string } | undefined)?.why === 'unread')
      for (const { callId } of (args[1] as Batch).asks ?? []) this.#unread.add(callId);
    if (error !== undefined) return;
    if (name === 'append') this.#appended(args[0] as ClaimRef, args[1] as Batch, answer as Orders);
    const isAccepted = name === 'answer' && (answer as { result: string }).result === 'accepted';
    const [question, given, options] = args as [{ id: string; tenant: string }, Answer, { nonce: string }];
    if (!isAccepted) return;
    const counted = this.#counted.get(question.id) ?? options.nonce;
    if (counted !== options.nonce) this.#broken(question.id, 'two answers were accepted');
    this.#counted.set(question.id, counted);
    this.#answered(question, given);
  }

  /** Nothing runs without its own approval, given after the question could be read. */
  effect({ tool, callId, phase, process }: Effect): void {
    if (tool !== 'wire' || phase !== 'begin') return;
    const id = this.#tasks.get(callId) ?? 'no task';
    const call = `${id} ${callId}`;
    if (this.#started.has(call)) this.#broken(id, `${callId} started twice`);
    this.#started.add(call);
    const isAllowed = this.#allowed.has(call) || this.#always.has(id);
    if (!isAllowed) this.#broken(id, `${callId} began in ${process} without consent`);
    if (this.#refused.has(call)) this.#broken(id, `${callId} began in ${process} though it was refused`);
    if (!this.#asked.has(call) && !this.#always.has(id)) this.#broken(id, `${callId} began and was never shown`);
  }

  async #createTask(i: number): Promise<void> {
    const { random, client, retryWhileUnavailable } = this.#context;
    const task = { tenant: TENANT, agent: 'careful', input: `careful ${i}`, key: `careful ${i}` };
    const nonce = `careful nonce ${i}`;
    const receipt = await retryWhileUnavailable(() => client.create(task, { nonce }));
    if (receipt?.result !== 'created') return;
    const ref = { tenant: TENANT, id: receipt.task.id };
    this.#context.attempt(() => this.#attend(ref));
    if (random.oneIn(4)) {
      const mode = random.pick(['graceful', 'now', 'kill'] as const);
      this.#context.userAt(random.below(6_000), () =>
        retryWhileUnavailable(() => client.cancel(ref, { by: `careful ${i}` }, { mode })),
      );
    }
  }

  /** Reads a task's questions as they come, and answers each, so that none waits for ever. */
  async #attend(ref: { tenant: string; id: string }): Promise<void> {
    const { process, store } = this.#context.connectClient(`person ${ref.id}`);
    for await (const one of this.#context.tasks.followTask<Question>(store, ref, { world: process.world })) {
      if (one.type !== 'entry' || one.event.type !== 'approval-question') continue;
      const { id } = one.event as Question;
      this.#planAnswer(ref, id);
    }
  }

  #planAnswer(ref: { tenant: string; id: string }, question: string): void {
    const { random } = this.#context;
    const decision = random.pick(['yes', 'yes', 'yes', 'no', 'always', 'never'] as const);
    const inMs = random.oneIn(4) ? random.below(9_000) : random.below(800);
    const answer = { value: { decision } };
    const send = (to: typeof ref, given: Answer, nonce: string): Promise<unknown> =>
      this.#context.retryWhileUnavailable(() => this.#context.client.answer(to, given, { nonce }));
    const to = { tenant: ref.tenant, id: question };
    // For another tenant, or for a question that was never asked: neither is an answer.
    if (random.oneIn(3)) {
      const yes = { value: { decision: 'yes' } } as const;
      this.#context.userAt(random.below(500), () => send({ ...to, tenant: 'globex' }, yes, `${question} stranger`));
      this.#context.userAt(random.below(500), () => send({ ...to, id: `${ref.id}.none` }, yes, `${question} wrong`));
    }
    this.#context.userAt(inMs, () => send(to, answer, question));
    const other = { value: { decision: random.pick(['yes', 'no'] as const) } };
    if (random.oneIn(3)) this.#context.userAt(inMs + random.below(2_000), () => send(to, other, `${question} again`));
  }

  #appended({ id }: ClaimRef, { events, asks = [] }: Batch, { questions = [], commands }: Orders): void {
    const isOpen = questions.some(({ answer, closed }) => answer === undefined && closed === undefined);
    if (isOpen && commands.some(({ type }) => type === 'steer')) this.#broken(id, 'it asks though a message is unread');
    for (const { id: question, callId: path, kind } of findAsked(asks, questions)) {
      const callId = path.split('/').at(-1)!;
      this.#asked.add(`${id} ${callId}`);
      this.#questions.set(question, { id, callId, kind });
    }
    for (const event of events)
      for (const callId of findIntents(event as unknown as Intent)) this.#tasks.set(callId, id);
  }

  #answered({ id, tenant }: { id: string; tenant: string }, { value }: Answer): void {
    const asked = this.#questions.get(id);
    if (asked === undefined || tenant !== TENANT) {
      this.#broken(id, 'an answer to no question was accepted');
      return;
    }
    if (asked.kind !== 'approve') return;
    const call = `${asked.id} ${asked.callId}`;
    const { decision } = value;
    if (decision === 'yes' || decision === 'always') this.#allowed.add(call);
    else this.#refused.add(call);
    if (decision === 'always') this.#always.add(asked.id);
  }

  /** An accepted answer has taken effect, or the record says why not, and no question is left open. */
  async judge(): Promise<void> {
    for (const [question, { id, callId }] of this.#questions) {
      const task = await this.#context.store.get({ tenant: TENANT, id });
      if (task?.outcome === undefined) continue;
      const { answer, closed, expiresAt = Infinity } = task.questions?.find((one) => one.id === question) ?? {};
      if (answer !== undefined && answer.at >= expiresAt)
        this.#broken(id, `an answer to ${callId} counts after its time`);
      if (closed === undefined) this.#broken(id, `the question about ${callId} is left open`);
      const isYes = ['yes', 'always'].includes((answer?.value as { decision: string } | undefined)?.decision ?? '');
      if (isYes && task.status === 'success' && closed?.why !== 'answered')
        this.#broken(id, `the yes to ${callId} was accepted and closed as ${closed?.why}`);
      if (isYes && task.status === 'success' && !this.#tasks.has(callId) && !this.#unread.has(callId))
        this.#broken(id, `the yes to ${callId} was accepted and the call was never started`);
    }
  }

  #broken(id: string, what: string): void {
    this.#context.violations.push({ promise: 'P13', what: `${id}: ${what}` });
  }
}

interface Intent {
  readonly type: string;
  readonly callId: string;
  /** The event of a run inside the call. */
  readonly event?: Intent;
}

/** Returns the call that an entry starts, also if it is inside other calls. */
export function findIntents({ type, callId, event }: Intent): readonly string[] {
  if (type === 'call-event' && event !== undefined) return findIntents(event);
  return type === 'call-intent' ? [callId] : [];
}

/** The questions of a batch that the store has: it treats a batch that arrives after a later one as a repeat. */
export function findAsked(asks: NonNullable<Batch['asks']>, stored: NonNullable<Orders['questions']>) {
  return asks.filter(({ id }) => stored.some((one) => one.id === id));
}
