import type { Message } from '@whoa/core';
import type { CreateReceipt } from '@whoa/tasks';
import { Answers } from './answers.ts';
import { ApprovalScenario } from './approvals.ts';
import { ChatScenario } from './chat.ts';
import type { SimulationContext } from './context.ts';
import { Followers } from './followers.ts';
import type { Commit } from './network.ts';
import type { Effect } from './work.ts';

/** Everything other than plain tasks: readers, a chat, people with approvals. Each is only in some simulated runs. */
export class Mixed {
  readonly #context: SimulationContext;
  readonly #followers: Followers;
  readonly #approvals: ApprovalScenario;
  readonly #answers: Answers;
  readonly #chat: ChatScenario;
  readonly #created = new Set<string>();

  constructor(context: SimulationContext) {
    this.#context = context;
    this.#followers = new Followers(context);
    this.#approvals = new ApprovalScenario(context);
    this.#answers = new Answers(context);
    this.#chat = new ChatScenario(context);
  }

  get isDone(): boolean {
    return this.#followers.areDone;
  }

  /** Returns whether there are also plain tasks. */
  plan(): boolean {
    const { random } = this.#context;
    const parts = 1 + random.below(3);
    if (parts !== 2) this.#chat.plan();
    if (parts !== 1) {
      const asked = random.below(3);
      if (asked !== 1) this.#approvals.plan();
      if (asked !== 0) this.#answers.plan();
    }
    return random.oneIn(2);
  }

  committed(commit: Commit): void {
    this.#approvals.committed(commit);
    this.#answers.committed(commit);
    this.#chat.committed(commit);
    if (commit.name === 'create') this.#wasCreated(commit.answer as CreateReceipt | undefined);
  }

  effect(effect: Effect): void {
    this.#approvals.effect(effect);
  }

  sawHistory(history: readonly Message[]): void {
    this.#answers.sawHistory(history);
  }

  async judge(): Promise<void> {
    await this.#followers.judge();
    await this.#chat.judge();
    await this.#approvals.judge();
    await this.#answers.judge();
  }

  #wasCreated(receipt: CreateReceipt | undefined): void {
    const { random } = this.#context;
    if (receipt?.result !== 'created' || this.#created.has(receipt.task.id)) return;
    const { id, tenant } = receipt.task;
    this.#created.add(id);
    if (random.oneIn(2)) return;
    const come = (): Promise<void> => Promise.resolve(this.#followers.follow({ tenant, id }));
    this.#context.userAt(random.below(4_000), come);
  }
}
