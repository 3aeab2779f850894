import { CancelledError } from '../../stop/errors.ts';
import type { CancellationToken } from '../../stop/token/token.ts';
import { waitUntilLevel } from '../../stop/wait.ts';
import type { Usage } from '../history/message.ts';
import type { Account } from './account.ts';
import type { ModelIds } from './price.ts';

interface Requested {
  readonly ids: ModelIds;
  readonly estimate: Usage;
  readonly token: CancellationToken;
}

/** The accounts that the requests of one run are paid from: its own, and those of the runs around it. */
export class Requests {
  readonly accounts: readonly Account[];

  constructor(accounts: readonly Account[]) {
    this.accounts = accounts;
  }

  /** Resolves when no limit around this run is being asked about. */
  async open(token: CancellationToken): Promise<void> {
    for (let asking = this.#asking; asking !== undefined; asking = this.#asking) {
      await waitUntilLevel(asking, token, 'drain');
      token.throwIfCancelled();
    }
  }

  get isAsking(): boolean {
    return this.#asking !== undefined;
  }

  get #asking(): Promise<boolean> | undefined {
    return this.accounts.find(({ asking }) => asking !== undefined)?.asking;
  }

  /** Reserves what a request may cost, on every account. Throws `CancelledError` if the run was stopped instead. */
  async begin(requested: Requested): Promise<PaidRequest> {
    const request = new PaidRequest(this.accounts, requested);
    await request.again();
    return request;
  }

  /** Counts usage that no request was made for, such as that of a compaction. */
  charge(usage: Usage, ids: ModelIds): void {
    for (const account of this.accounts) account.charge(usage, ids);
  }
}

/** One request to a model, and its repetitions. */
export class PaidRequest {
  readonly #accounts: readonly Account[];
  readonly #requested: Requested;
  #held: readonly number[] | undefined;

  constructor(accounts: readonly Account[], requested: Requested) {
    this.#accounts = accounts;
    this.#requested = requested;
  }

  /** Reserves once more, before the request is repeated. */
  async again(): Promise<void> {
    const { token } = this.#requested;
    this.#held = await this.#reserve();
    try {
      await Promise.all(this.#accounts.map((account) => account.record()));
      token.throwIfCancelled();
    } catch (error) {
      this.settle('unsent');
      throw error;
    }
  }

  async #reserve(): Promise<readonly number[]> {
    const { ids, estimate, token } = this.#requested;
    for (;;) {
      token.throwIfCancelled();
      const amounts = this.#accounts.map((account) => account.amountFor(estimate, ids));
      const over = this.#accounts.find((account, index) => account.isOver(amounts[index]));
      if (over !== undefined) {
        const end = await waitUntilLevel(over.reach(), token, 'drain');
        token.throwIfCancelled();
        if (end.by === 'error') throw end.error;
        if (end.by !== 'value' || !end.value) throw new CancelledError({ kind: 'budget', at: token.clock.now() });
        continue;
      }
      const full = this.#accounts.find((account, index) => account.isFull(amounts[index]!));
      if (full === undefined) {
        for (const [index, account] of this.#accounts.entries()) account.reserve(amounts[index]!);
        return amounts as number[];
      }
      await waitUntilLevel(full.change, token, 'drain');
    }
  }

  /** Ends the request, once: with what its provider reported, or `unsent` if that cannot have charged anything. */
  settle(usage: Usage | undefined | 'unsent'): void {
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    for (const [index, account] of this.#accounts.entries()) account.settle(held[index]!, usage, this.#requested.ids);
  }
}
