import type { ClaimRef } from '@whoa/tasks/store';
import type { Batch } from '../../packages/tasks/src/delivery.ts';
import type { Commit } from './network.ts';
import type { Stage } from './stage.ts';
import type { Effect } from './work.ts';

type Answer = { readonly value: { readonly decision: 'yes' | 'no' | 'always' | 'never'; readonly why?: string } };
type Question = { readonly type: string; readonly id: string; readonly question: { readonly callId: string } };

const TENANT = 'acme';

/** People who are asked before calls: they answer late, twice, for the wrong call, in the wrong name, and after a cancel. */
export class Consent {
  readonly #stage: Stage;
  /** Questions that the store knows, by task and call. */
  readonly #asked = new Set<string>();
  /** What was allowed, and what was refused. */
  readonly #allowed = new Set<string>();
  readonly #refused = new Set<string>();
  /** Tasks in which everything alike was allowed. */
  readonly #always = new Set<string>();
  readonly #tasks = new Map<string, string>();
  /** The task and the call of each question. */
  readonly #questions = new Map<string, { readonly id: string; readonly callId: string }>();
  /** The request whose answer counts, by question. */
  readonly #counted = new Map<string, string>();
  readonly #started = new Set<string>();

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  plan(): void {
    const { chance, workMs } = this.#stage;
    const count = 1 + chance.below(2);
    for (let i = 0; i < count; i++) this.#stage.userAt(chance.below(workMs), () => this.#createTask(i));
  }

  committed({ name, args, answer, error }: Commit): void {
    if (error !== undefined) return;
    if (name === 'append') this.#appended(args[0] as ClaimRef, args[1] as Batch);
    const isAccepted = name === 'answer' && (answer as { result: string }).result === 'accepted';
    const [question, given, options] = args as [{ id: string; tenant: string }, Answer, { nonce: string }];
    if (!isAccepted) return;
    const counted = this.#counted.get(question.id) ?? options.nonce;
    if (counted !== options.nonce) this.#broken(question.id, 'two answers were accepted');
    this.#counted.set(question.id, counted);
    this.#answered(question, given);
  }

  /** Nothing runs without its own consent, given after the question could be read. */
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
    const { chance, client, retryWhileUnavailable } = this.#stage;
    const task = { tenant: TENANT, agent: 'careful', input: `careful ${i}`, key: `careful ${i}` };
    const nonce = `careful nonce ${i}`;
    const receipt = await retryWhileUnavailable(() => client.create(task, { nonce }));
    if (receipt?.result !== 'created') return;
    const ref = { tenant: TENANT, id: receipt.task.id };
    this.#stage.attempt(() => this.#attend(ref));
    if (chance.oneIn(4)) {
      const mode = chance.pick(['graceful', 'now', 'kill'] as const);
      this.#stage.userAt(chance.below(6_000), () =>
        retryWhileUnavailable(() => client.cancel(ref, { by: `careful ${i}` }, { mode })),
      );
    }
  }

  /** Reads the questions of a task as they come, and answers each: nothing is left to wait for ever. */
  async #attend(ref: { tenant: string; id: string }): Promise<void> {
    const { process, store } = this.#stage.visit(`person ${ref.id}`);
    for await (const one of this.#stage.tasks.followTask<Question>(store, ref, { world: process.world })) {
      if (one.type !== 'entry' || one.event.type !== 'approval-question') continue;
      const { id } = one.event as Question;
      this.#planAnswer(ref, id);
    }
  }

  #planAnswer(ref: { tenant: string; id: string }, question: string): void {
    const { chance } = this.#stage;
    const decision = chance.pick(['yes', 'yes', 'yes', 'no', 'always', 'never'] as const);
    const inMs = chance.oneIn(4) ? chance.below(9_000) : chance.below(800);
    const answer = { value: { decision } };
    const send = (to: typeof ref, given: Answer, nonce: string): Promise<unknown> =>
      this.#stage.retryWhileUnavailable(() => this.#stage.client.answer(to, given, { nonce }));
    const to = { tenant: ref.tenant, id: question };
    // In another's name, to a question that was never asked, and nonsense: none of that is an answer.
    if (chance.oneIn(3)) {
      const yes = { value: { decision: 'yes' } } as const;
      this.#stage.userAt(chance.below(500), () => send({ ...to, tenant: 'globex' }, yes, `${question} stranger`));
      this.#stage.userAt(chance.below(500), () => send({ ...to, id: `${ref.id}.none` }, yes, `${question} wrong`));
    }
    this.#stage.userAt(inMs, () => send(to, answer, question));
    const other = { value: { decision: chance.pick(['yes', 'no'] as const) } };
    if (chance.oneIn(3)) this.#stage.userAt(inMs + chance.below(2_000), () => send(to, other, `${question} again`));
  }

  #appended({ id }: ClaimRef, { events, asks = [] }: Batch): void {
    for (const { id: question, callId } of asks) {
      this.#asked.add(`${id} ${callId}`);
      this.#questions.set(question, { id, callId });
    }
    for (const event of events as unknown as readonly (Question & { callId: string })[])
      if (event.type === 'call-intent') this.#tasks.set(event.callId, id);
  }

  #answered({ id, tenant }: { id: string; tenant: string }, { value: { decision } }: Answer): void {
    const asked = this.#questions.get(id);
    if (asked === undefined || tenant !== TENANT) {
      this.#broken(id, 'an answer to no question was accepted');
      return;
    }
    const call = `${asked.id} ${asked.callId}`;
    if (decision === 'yes' || decision === 'always') this.#allowed.add(call);
    else this.#refused.add(call);
    if (decision === 'always') this.#always.add(asked.id);
  }

  /** An answer that was accepted has taken effect, or the record says why not; and nothing is left open. */
  async judge(): Promise<void> {
    for (const [question, { id, callId }] of this.#questions) {
      const task = await this.#stage.store.get({ tenant: TENANT, id });
      if (task?.outcome === undefined) continue;
      const { answer, closed } = task.questions?.find((one) => one.id === question) ?? {};
      if (closed === undefined) this.#broken(id, `the question about ${callId} is left open`);
      const isYes = ['yes', 'always'].includes((answer?.value as { decision: string } | undefined)?.decision ?? '');
      if (isYes && task.status === 'success' && closed?.why !== 'answered')
        this.#broken(id, `the yes to ${callId} was accepted and closed as ${closed?.why}`);
      if (isYes && task.status === 'success' && !this.#tasks.has(callId))
        this.#broken(id, `the yes to ${callId} was accepted and the call was never started`);
    }
  }

  #broken(id: string, what: string): void {
    this.#stage.violations.push({ promise: 'P13', what: `${id}: ${what}` });
  }
}
