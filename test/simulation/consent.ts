import type { ClaimRef } from '@whoa/tasks/store';
import type { Batch } from '../../packages/tasks/src/store.ts';
import type { Commit } from './network.ts';
import type { Stage } from './stage.ts';
import type { Effect } from './work.ts';

type Approval = {
  readonly type?: string;
  readonly callId: string;
  readonly approved: boolean | string;
  remember?: boolean;
};
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
  /** Calls that any person was asked about, and their tasks. */
  readonly #seen = new Map<string, string>();

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
    const isSent = name === 'send' && (answer as { answer: string }).answer === 'accepted';
    const { id, tenant } = args[0] as { id: string; tenant?: string };
    if (isSent && tenant === TENANT) this.#sent(id, args[1] as Approval);
  }

  /** Nothing runs without its own consent, given after the question could be read. */
  effect({ tool, callId, phase, process }: Effect): void {
    if (tool !== 'wire' || phase !== 'begin') return;
    const id = this.#tasks.get(callId) ?? 'no task';
    const call = `${id} ${callId}`;
    const isAllowed = this.#allowed.has(call) || this.#always.has(id);
    if (!isAllowed) this.#broken(id, `${callId} began in ${process} without consent`);
    if (this.#refused.has(call)) this.#broken(id, `${callId} began in ${process} though it was refused`);
    if (!this.#asked.has(call) && !this.#always.has(id)) this.#broken(id, `${callId} began and was never shown`);
  }

  async #createTask(i: number): Promise<void> {
    const { chance, client, askUntilAnswered } = this.#stage;
    const task = { tenant: TENANT, agent: 'careful', input: `careful ${i}`, key: `careful ${i}` };
    const nonce = `careful nonce ${i}`;
    const receipt = await askUntilAnswered(() => client.create(task, { nonce }));
    if (receipt?.answer !== 'created') return;
    const ref = { tenant: TENANT, id: receipt.task.id };
    this.#stage.attempt(() => this.#attend(ref));
    if (chance.oneIn(4)) {
      const mode = chance.pick(['graceful', 'now', 'kill'] as const);
      this.#stage.userAt(chance.below(6_000), () =>
        askUntilAnswered(() => client.cancel(ref, { by: `careful ${i}` }, { mode })),
      );
    }
  }

  /** Reads the questions of a task as they come, and answers each: nothing is left to wait for ever. */
  async #attend(ref: { tenant: string; id: string }): Promise<void> {
    const { process, store } = this.#stage.visit(`person ${ref.id}`);
    for await (const one of this.#stage.tasks.followTask<Question>(store, ref, { world: process.world })) {
      if (one.type !== 'entry' || one.event.type !== 'approval-question') continue;
      const { id, question } = one.event as Question;
      this.#seen.set(question.callId, ref.id);
      this.#planAnswer(ref, question.callId, id);
    }
  }

  #planAnswer(ref: { tenant: string; id: string }, callId: string, question: string): void {
    const { chance } = this.#stage;
    const approved = chance.pick([true, true, true, false, 'not now'] as const);
    const remember = approved === true && chance.oneIn(5);
    const inMs = chance.oneIn(4) ? chance.below(9_000) : chance.below(800);
    const answer = { type: 'approve', callId, approved, ...(remember && { remember }) } as const;
    const send = (to: typeof ref, command: typeof answer, nonce: string): Promise<unknown> =>
      this.#stage.askUntilAnswered(() => this.#stage.client.send(to, command, { nonce }));
    // In another's name, for another call, for a call of long ago: none of that is an answer.
    if (chance.oneIn(3)) {
      const elsewhere = [...this.#seen].filter(([, id]) => id !== ref.id);
      const other = chance.pick(elsewhere.map(([call]) => call).concat('nothing'));
      const [stranger, wrong] = [
        { ...ref, tenant: 'globex' },
        { ...answer, callId: other, approved: false },
      ];
      this.#stage.userAt(chance.below(500), () =>
        send(stranger, { ...answer, approved: true }, `${question} stranger`),
      );
      this.#stage.userAt(chance.below(500), () => send(ref, wrong, `${question} wrong`));
    }
    this.#stage.userAt(inMs, () => send(ref, answer, question));
    if (chance.oneIn(3)) this.#stage.userAt(inMs + chance.below(2_000), () => send(ref, answer, `${question} again`));
  }

  #appended({ id }: ClaimRef, { events }: Batch): void {
    for (const event of events as unknown as readonly (Question & { callId: string })[]) {
      if (event.type === 'approval-question') this.#asked.add(`${id} ${event.question.callId}`);
      if (event.type === 'call-intent') this.#tasks.set(event.callId, id);
    }
  }

  #sent(id: string, { type, callId, approved, remember }: Approval): void {
    if (type !== 'approve') return;
    const call = `${id} ${callId}`;
    if (approved === true) this.#allowed.add(call);
    else this.#refused.add(call);
    if (approved === true && remember) this.#always.add(id);
  }

  #broken(id: string, what: string): void {
    this.#stage.violations.push({ promise: 'P13', what: `${id}: ${what}` });
  }
}
