import type { Stage } from './stage.ts';

const TENANTS = ['acme', 'acme', 'globex'] as const;
const TALK_MS = 5_000;

/** Users who create tasks of all kinds, and do to them what users do. */
export class Users {
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** What users do: tasks, conversations, cancels, messages. */
  plan(): void {
    const chance = this.#stage.chance;
    const isConversation = chance.oneIn(4);
    const count = 2 + chance.below(5);
    for (let i = 0; i < count; i++) {
      const at = chance.below(isConversation ? TALK_MS : this.#stage.workMs);
      this.#stage.userAt(at, () => this.#createTask(i, isConversation));
    }
  }

  /** `isConversation`: everything is said in one conversation, in a short time. */
  async #createTask(i: number, isConversation: boolean): Promise<void> {
    const chance = this.#stage.chance;
    const conversation = isConversation || chance.oneIn(3) ? 'c1' : undefined;
    const policy = chance.pick(['replace', 'queue', 'steer', 'reject'] as const);
    const tenant = isConversation ? TENANTS[0] : chance.pick(TENANTS);
    const task = {
      tenant,
      agent: chance.pick(['assistant', 'assistant', 'brief', 'long', 'broken']),
      input: `task ${i}`,
      key: `task ${i}`,
      conversation,
      priority: chance.below(3),
      ...(conversation !== undefined && chance.oneIn(4) && { debounceMs: 1 + chance.below(2_000) }),
      ...(conversation === undefined &&
        chance.oneIn(5) && { notBefore: this.#stage.clock.now() + chance.below(5_000) }),
    };
    const isCancelled = chance.oneIn(2);
    const cancelIn = chance.below(8_000);
    const nonce = `nonce ${i}`;
    const isRepeated = chance.oneIn(4);
    const again = { policy, nonce: chance.oneIn(2) ? nonce : `${nonce} again` };
    if (chance.oneIn(5)) this.#stage.userAt(chance.below(6_000), () => this.#workOn(task));
    const receipt = await this.#stage.retryWhileUnavailable(() => this.#stage.client.create(task, { policy, nonce }));
    if (isRepeated)
      this.#stage.userAt(chance.below(10_000), () =>
        this.#stage.retryWhileUnavailable(() => this.#stage.client.create(task, again)),
      );
    if (receipt?.result !== 'created') return;
    const ref = { tenant, id: receipt.task.id };
    if (conversation !== undefined && chance.oneIn(6)) {
      this.#stage.userAt(chance.below(10_000), () =>
        this.#stage.retryWhileUnavailable(() => this.#stage.client.cancel({ tenant, conversation })),
      );
    }
    if (isCancelled) this.#stage.userAt(cancelIn, () => this.#cancel(ref, i));
    if (chance.oneIn(6)) {
      const message = { type: 'steer', message: 'be brief' } as const;
      this.#stage.userAt(chance.below(4_000), () =>
        this.#stage.retryWhileUnavailable(() => this.#stage.client.send(ref, message, { nonce })),
      );
    }
  }

  /** A worker is asked for one task, by its id, beside those that it takes. */
  async #workOn({ tenant, key }: { readonly tenant: string; readonly key: string }): Promise<void> {
    const { runner } = this.#stage.chance.pick(this.#stage.workers);
    const task = await this.#stage.retryWhileUnavailable(() => this.#stage.client.find({ tenant, key }));
    const wait = this.#stage.chance.oneIn(2);
    // Not awaited: a worker that dies never answers.
    if (task !== undefined) this.#stage.attempt(() => runner.runExisting({ tenant, id: task.id }, { wait }));
  }

  async #cancel(ref: { tenant: string; id: string }, i: number): Promise<void> {
    const mode = this.#stage.chance.pick(['graceful', 'now', 'kill'] as const);
    const undo = this.#stage.chance.oneIn(3);
    await this.#stage.retryWhileUnavailable(() => this.#stage.client.cancel(ref, { by: `user ${i}` }, { mode, undo }));
    if (this.#stage.chance.oneIn(3))
      this.#stage.userAt(this.#stage.chance.below(2_000), () => this.#cancel(ref, i + 100));
  }
}
