import type { TaskRecord, TaskStore } from '@whoa/tasks';
import type { ClaimRef } from '@whoa/tasks/store';
import { createQuestionId, type Question } from '../../packages/tasks/src/question.ts';
import { openStore } from './open-store.ts';
import type { SharedStoreKind } from './shared-stores.ts';

/** The operations that a park races against. */
const RIVALS = [
  'answer',
  'cancel',
  'expiry',
  'queue',
  'steer',
  'sweep',
  'answer and expiry',
  'answer and cancel',
] as const;
type Rival = (typeof RIVALS)[number];

export interface QuestionRaceReport {
  readonly races: number;
  /** How each race ended: the rival, the result of the park, and the stage of the task. */
  readonly results: Record<string, number>;
  readonly violations: readonly string[];
}

const TENANT = 'race';
const LONG_MS = 3_600_000;
const PARALLEL = 8;
/** A session is only freed by the second sweep after a quiet time. */
const MAX_SWEEPS = 50;

/**
 * Parks tasks while another client answers, cancels, sweeps or writes, and brings each to its end. Checks that no answer is
 * lost or acted on twice, and that no task is stuck.
 */
export async function runQuestionRaces(kind: SharedStoreKind, races: number): Promise<QuestionRaceReport> {
  await using shared = await kind.open();
  await using one = openStore(shared.location);
  await using other = openStore(shared.location);
  const results: Record<string, number> = {};
  const violations: string[] = [];
  let started = 0;
  const runSome = async (): Promise<void> => {
    for (let number = started++; number < races; number = started++) {
      const race = new Race(one, other, number);
      const result = await race.run().catch((error: unknown) => race.violate(String(error)));
      results[result] = (results[result] ?? 0) + 1;
      violations.push(...race.violations);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, runSome));
  return { races, results, violations };
}

class Race {
  readonly violations: string[] = [];
  readonly #worker: TaskStore;
  readonly #other: TaskStore;
  readonly #number: number;
  readonly #rival: Rival;
  #id = '';
  #isAccepted = false;
  #acted = 0;

  constructor(worker: TaskStore, other: TaskStore, number: number) {
    this.#worker = worker;
    this.#other = other;
    this.#number = number;
    this.#rival = RIVALS[number % RIVALS.length]!;
  }

  violate(problem: string): string {
    this.violations.push(`${this.#rival} ${this.#id}: ${problem}`);
    return 'violation';
  }

  async run(): Promise<string> {
    const created = await this.#worker.create(this.#message('first'));
    if (created.result !== 'created') return this.violate('not created');
    this.#id = created.task.id;
    const claim = await this.#claim(this.#rival === 'sweep' ? 1 : LONG_MS);
    const id = createQuestionId(this.#id, 1);
    const expiresMs = this.#rival.includes('expiry') ? 1 : LONG_MS;
    const asks = [{ id, callId: 'call', kind: 'approve' as const, shown: 'digest', expiresMs }];
    const asked = await this.#worker.append(claim, { after: 0, events: ['asked'], asks }).catch(onLeaseLost);
    // The sweep of another race was faster.
    if (asked === undefined && this.#rival === 'sweep') return 'sweep: freed before it asked';
    const { orderNumber } = asked!;
    const park = (): Promise<string> =>
      this.#worker.park(claim, { position: 1, orderNumber }).then(
        ({ result: answer }) => answer,
        (error: Error & { code?: string }) => error.code ?? error.message,
      );
    const rivals = this.#rival.split(' and ').map((rival) => () => this.#oppose(rival, id));
    const moves = [park, ...rivals];
    const first = Math.floor(Math.random() * moves.length);
    const running = [...moves.slice(first), ...moves.slice(0, first)].map((move) => move());
    const done = await Promise.all(running);
    const parked = done[(moves.length - first) % moves.length]!;
    const task = await this.#read();
    this.#judge(task, parked);
    const result = `${this.#rival}: ${parked}, ${task.stage}`;
    await this.#bringToEnd(task.stage === 'held' ? claim : undefined);
    return result;
  }

  #message(input: string): { tenant: string; agent: string; conversation: string; input: string } {
    return { tenant: TENANT, agent: 'a', conversation: `c${this.#number}`, input };
  }

  async #claim(leaseMs: number): Promise<ClaimRef> {
    const unique = `${this.#number}-${Math.random()}`;
    const claimed = await this.#worker.claim(this.#id, {
      session: `s-${unique}`,
      claim: `c-${unique}`,
      worker: 'w',
      leaseMs,
    });
    if (claimed.result !== 'claimed') throw new Error(`claim: ${claimed.result}`);
    return claimed.claim;
  }

  async #oppose(rival: string, question: string): Promise<string> {
    const ref = { tenant: TENANT, id: this.#id };
    if (rival === 'answer') {
      const { result } = await this.#other.answer({ tenant: TENANT, id: question }, { value: 'yes', by: 'ada' });
      this.#isAccepted = result === 'accepted';
      return result;
    }
    if (rival === 'cancel') return (await this.#other.cancel(ref)).result;
    if (rival === 'queue' || rival === 'steer') {
      return (await this.#other.create(this.#message('second'), { policy: rival })).result;
    }
    for (let i = 0; i < MAX_SWEEPS; i++) {
      await this.#other.sweep();
      const { stage, questions } = await this.#read();
      if (rival === 'sweep' ? stage !== 'held' : !questions?.some(isOpen)) break;
    }
    return 'swept';
  }

  async #read(): Promise<TaskRecord> {
    return (await this.#other.get({ tenant: TENANT, id: this.#id }))!;
  }

  #judge(task: TaskRecord, parked: string): void {
    const { stage, status, waiting = 0, questions = [], commands, stop } = task;
    const open = questions.filter(isOpen).length;
    if (open !== waiting) this.violate(`${open} open, ${waiting} waiting`);
    if (stage === 'parked' && (status !== 'running' || open === 0 || commands.length > 0 || stop !== undefined)) {
      this.violate('parked with something to do');
    }
    const allowed: Readonly<Record<string, readonly unknown[]>> = {
      parked: this.#rival === 'sweep' ? ['parked'] : ['ready'],
      busy: ['held'],
      LEASE_LOST: this.#rival === 'sweep' ? ['ready', 'delayed'] : [],
    };
    if (!allowed[parked]?.includes(stage)) this.violate(`the park got ${parked}, and the task is ${stage}`);
    if (this.#rival !== 'sweep' && open > 0) this.violate('the question is still open');
    const [question] = questions;
    if (this.#isAccepted && question?.answer?.by !== 'ada') this.violate('an accepted answer is lost');
    if (!this.#isAccepted && question?.answer !== undefined) this.violate('an answer that was refused counts');
  }

  /** Acts as a worker until the task has ended. */
  async #bringToEnd(held: ClaimRef | undefined): Promise<void> {
    const before = await this.#read();
    if (before.stage === 'parked') {
      this.#isAccepted = (await this.#oppose('answer', createQuestionId(this.#id, 1))) === 'accepted';
    }
    const claim = held ?? (await this.#claim(LONG_MS));
    let task = await this.#read();
    let orders = await this.#worker.append(claim, { after: task.position, events: [] });
    // After a crash the question may still wait.
    if (orders.questions?.some(isOpen)) {
      this.#isAccepted = (await this.#oppose('answer', createQuestionId(this.#id, 1))) === 'accepted';
      orders = await this.#worker.append(claim, { after: task.position, events: [] });
    }
    if (orders.stop === undefined) {
      const closes = (orders.questions ?? []).map(({ id, closed }) => {
        if (closed === undefined) this.#acted++;
        return { id, why: closed === undefined ? ('answered' as const) : ('journaled' as const) };
      });
      const done = orders.commands.map(({ number }) => number);
      await this.#worker.append(claim, { after: task.position, events: ['acted'], closes, done });
    }
    await this.#worker.finish(claim, { status: orders.stop === undefined ? 'success' : 'cancelled' });
    task = await this.#read();
    if (task.endedAt === undefined) this.violate(`stuck as ${task.stage}`);
    if (task.questions?.some(({ closed }) => closed === undefined))
      this.violate('ended with a question that is not closed');
    const due = this.#isAccepted && task.status === 'success' ? 1 : 0;
    if (this.#acted !== due) this.violate(`an answer was acted on ${this.#acted} times, not ${due}`);
  }
}

function onLeaseLost(error: Error & { readonly code?: string }): undefined {
  if (error.code !== 'LEASE_LOST') throw error;
}

function isOpen({ answer, closed }: Question): boolean {
  return answer === undefined && closed === undefined;
}
