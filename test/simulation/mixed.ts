import type { CreateReceipt } from '@whoa/tasks';
import { Consent } from './approvals.ts';
import { Talk } from './chat.ts';
import { Followers } from './followers.ts';
import type { Commit } from './network.ts';
import type { Stage } from './stage.ts';
import type { Effect } from './work.ts';

/** What there is beside plain tasks: readers, a chat, people who are asked. Each is in some histories only. */
export class Wide {
  readonly #stage: Stage;
  readonly #followers: Followers;
  readonly #consent: Consent;
  readonly #talk: Talk;
  readonly #created = new Set<string>();

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#followers = new Followers(stage);
    this.#consent = new Consent(stage);
    this.#talk = new Talk(stage);
  }

  get isDone(): boolean {
    return this.#followers.areDone;
  }

  /** Returns whether there is room for plain tasks too. */
  plan(): boolean {
    const { chance } = this.#stage;
    const parts = 1 + chance.below(3);
    if (parts !== 2) this.#talk.plan();
    if (parts !== 1) this.#consent.plan();
    return chance.oneIn(2);
  }

  committed(commit: Commit): void {
    this.#consent.committed(commit);
    this.#talk.committed(commit);
    if (commit.name === 'create') this.#wasCreated(commit.answer as CreateReceipt | undefined);
  }

  effect(effect: Effect): void {
    this.#consent.effect(effect);
  }

  async judge(): Promise<void> {
    await this.#followers.judge();
    await this.#talk.judge();
    await this.#consent.judge();
  }

  #wasCreated(receipt: CreateReceipt | undefined): void {
    const { chance } = this.#stage;
    if (receipt?.result !== 'created' || this.#created.has(receipt.task.id)) return;
    const { id, tenant } = receipt.task;
    this.#created.add(id);
    if (chance.oneIn(2)) return;
    const come = (): Promise<void> => Promise.resolve(this.#followers.follow({ tenant, id }));
    this.#stage.userAt(chance.below(4_000), come);
  }
}
