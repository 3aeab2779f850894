import type { SimulationContext } from './context.ts';

const TENANTS = ['acme', 'acme', 'globex'] as const;
const TALK_MS = 5_000;

/** Users who create tasks of all kinds and act on them. */
export class Users {
  readonly #context: SimulationContext;

  constructor(context: SimulationContext) {
    this.#context = context;
  }

  /** Plans tasks, conversations, cancels and messages. */
  plan(): void {
    const random = this.#context.random;
    const isConversation = random.oneIn(4);
    const count = 2 + random.below(5);
    for (let i = 0; i < count; i++) {
      const at = random.below(isConversation ? TALK_MS : this.#context.workMs);
      this.#context.userAt(at, () => this.#createTask(i, isConversation));
    }
  }

  /** `isConversation`: all messages go to one conversation, in a short time. */
  async #createTask(i: number, isConversation: boolean): Promise<void> {
    const random = this.#context.random;
    const conversation = isConversation || random.oneIn(3) ? 'c1' : undefined;
    const policy = random.pick(['replace', 'queue', 'steer', 'reject'] as const);
    const tenant = isConversation ? TENANTS[0] : random.pick(TENANTS);
    const task = {
      tenant,
      agent: random.pick(['assistant', 'assistant', 'brief', 'long', 'broken']),
      input: `task ${i}`,
      key: `task ${i}`,
      conversation,
      priority: random.below(3),
      ...(conversation !== undefined && random.oneIn(4) && { debounceMs: 1 + random.below(2_000) }),
      ...(conversation === undefined &&
        random.oneIn(5) && { notBefore: this.#context.clock.now() + random.below(5_000) }),
    };
    const isCancelled = random.oneIn(2);
    const cancelIn = random.below(8_000);
    const nonce = `nonce ${i}`;
    const isRepeated = random.oneIn(4);
    const again = { policy, nonce: random.oneIn(2) ? nonce : `${nonce} again` };
    if (random.oneIn(5)) this.#context.userAt(random.below(6_000), () => this.#workOn(task));
    const receipt = await this.#context.retryWhileUnavailable(() =>
      this.#context.client.create(task, { policy, nonce }),
    );
    if (isRepeated)
      this.#context.userAt(random.below(10_000), () =>
        this.#context.retryWhileUnavailable(() => this.#context.client.create(task, again)),
      );
    if (receipt?.result !== 'created') return;
    const ref = { tenant, id: receipt.task.id };
    if (conversation !== undefined && random.oneIn(6)) {
      this.#context.userAt(random.below(10_000), () =>
        this.#context.retryWhileUnavailable(() => this.#context.client.cancel({ tenant, conversation })),
      );
    }
    if (isCancelled) this.#context.userAt(cancelIn, () => this.#cancel(ref, i));
    if (random.oneIn(6)) {
      const message = { type: 'steer', message: 'be brief' } as const;
      this.#context.userAt(random.below(4_000), () =>
        this.#context.retryWhileUnavailable(() => this.#context.client.send(ref, message, { nonce })),
      );
    }
  }

  /** Runs one task by its id on a worker that also takes others. */
  async #workOn({ tenant, key }: { readonly tenant: string; readonly key: string }): Promise<void> {
    const { runner } = this.#context.random.pick(this.#context.workers);
    const task = await this.#context.retryWhileUnavailable(() => this.#context.client.find({ tenant, key }));
    const wait = this.#context.random.oneIn(2);
    // Not awaited: a worker that dies never responds.
    if (task !== undefined) this.#context.attempt(() => runner.runExisting({ tenant, id: task.id }, { wait }));
  }

  async #cancel(ref: { tenant: string; id: string }, i: number): Promise<void> {
    const mode = this.#context.random.pick(['graceful', 'now', 'kill'] as const);
    const undo = this.#context.random.oneIn(3);
    await this.#context.retryWhileUnavailable(() =>
      this.#context.client.cancel(ref, { by: `user ${i}` }, { mode, undo }),
    );
    if (this.#context.random.oneIn(3))
      this.#context.userAt(this.#context.random.below(2_000), () => this.#cancel(ref, i + 100));
  }
}
