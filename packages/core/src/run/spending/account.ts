import type { Usage } from '../history/message.ts';
import { describeMissingPrice, findPrice, MICRO_USD, type ModelIds, type Prices } from './price.ts';

/** What a run has spent, in whole millionths of a US dollar. */
export interface Spending {
  /** Including `estimated`. */
  readonly spent: number;
  /** How much of it no provider reported: the reservations of requests that ended without figures. */
  readonly estimated: number;
  /** What the requests in progress may cost. */
  readonly reserved: number;
  readonly limit: number;
}

interface AccountOptions extends Prices {
  readonly usd: number;
  /** What earlier runs of the same task have spent. */
  readonly before?: Pick<Spending, 'spent' | 'estimated'> | undefined;
  readonly onChange: (spending: Spending) => void;
  /** Records a reservation before its request is sent. */
  readonly beforeRequest?: (() => unknown) | undefined;
  /** Called when the limit is reached. Resolves to whether the run may continue. */
  readonly onReached: (message: string, missing: string | undefined) => Promise<boolean>;
}

/** The money of one run and of all runs inside it. */
export class Account {
  readonly #options: AccountOptions;
  #limit: number;
  #spent: number;
  #estimated: number;
  #reserved = 0;
  #dearest = 0;
  #missing: ModelIds | undefined;
  #change = Promise.withResolvers<void>();
  #asking: Promise<boolean> | undefined;
  #isClosed = false;

  constructor(options: AccountOptions) {
    this.#options = options;
    this.#limit = options.usd === Infinity ? Infinity : Math.floor(options.usd * MICRO_USD + 1e-6);
    this.#spent = options.before?.spent ?? 0;
    this.#estimated = options.before?.estimated ?? 0;
  }

  get spending(): Spending {
    return { spent: this.#spent, estimated: this.#estimated, reserved: this.#reserved, limit: this.#limit };
  }

  /** Set while a user is asked for more: nothing new starts until it resolves. */
  get asking(): Promise<boolean> | undefined {
    return this.#asking;
  }

  /** Resolves at the next change of the reservations or the limit. */
  get change(): Promise<void> {
    return this.#change.promise;
  }

  /** Returns what to reserve for a request: at least what the dearest one so far cost. */
  amountFor(estimate: Usage, ids: ModelIds): number | undefined {
    const amount = findPrice(this.#options, estimate, ids);
    if (amount === undefined) this.#missing = ids;
    return amount === undefined ? undefined : Math.max(amount, this.#dearest);
  }

  /** Whether a request of this amount would pass the limit whatever those in progress cost. */
  isOver(amount: number | undefined): boolean {
    return amount === undefined || this.#missing !== undefined || this.#spent + amount > this.#limit;
  }

  /** Whether it would pass the limit only with what is reserved: then it waits. */
  isFull(amount: number): boolean {
    return this.#spent + this.#reserved + amount > this.#limit;
  }

  /** The limit is reached. However many requests find that out, it is dealt with once. */
  reach(): Promise<boolean> {
    const missing = this.#missing && describeMissingPrice(this.#options, this.#missing);
    this.#asking ??= this.#options.onReached(missing ?? describeSpending(this.spending), missing).finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  raise(usd: number): void {
    this.#limit += Math.floor(usd * MICRO_USD + 1e-6);
    this.#changed();
  }

  reserve(amount: number): void {
    this.#reserved += amount;
    this.#changed();
  }

  async record(): Promise<void> {
    await this.#options.beforeRequest?.();
  }

  /** Ends a request. Without complete figures it counts as reserved; `unsent` requests cost nothing. */
  settle(amount: number, usage: Usage | undefined | 'unsent', ids: ModelIds): void {
    if (this.#isClosed) return;
    this.#reserved -= amount;
    if (usage !== 'unsent') this.#charge(usage, ids, amount);
    this.#changed();
  }

  /** Counts what was used without a reservation. */
  charge(usage: Usage, ids: ModelIds): void {
    if (this.#isClosed) return;
    this.#charge(usage, ids, 0);
    this.#changed();
  }

  /** Nothing is settled after this: what is reserved counts as spent. */
  close(): Spending {
    if (!this.#isClosed && this.#reserved > 0) {
      this.#spent += this.#reserved;
      this.#estimated += this.#reserved;
      this.#reserved = 0;
      this.#changed();
    }
    this.#isClosed = true;
    return this.spending;
  }

  #charge(usage: Usage | undefined, ids: ModelIds, atLeast: number): void {
    const cost = usage && findPrice(this.#options, usage, ids);
    if (usage !== undefined && cost === undefined) this.#missing = ids;
    const isKnown = usage?.isComplete === true && cost !== undefined;
    const amount = isKnown ? cost : Math.max(cost ?? 0, atLeast);
    this.#spent += amount;
    if (isKnown) this.#dearest = Math.max(this.#dearest, amount);
    else this.#estimated += amount;
  }

  #changed(): void {
    this.#options.onChange(this.spending);
    const { resolve } = this.#change;
    this.#change = Promise.withResolvers();
    resolve();
  }
}

/** Says what was spent, for people. */
function describeSpending({ spent, estimated, limit }: Spending): string {
  const part = estimated === 0 ? '' : `, ${toUsd(estimated)} of it estimated`;
  return `${toUsd(spent)} of ${toUsd(limit)} USD spent${part}`;
}

/** Writes an amount in dollars, with more digits where cents would hide it. */
function toUsd(micro: number): string {
  const usd = micro / MICRO_USD;
  return usd >= 1 || micro % 10_000 === 0 ? usd.toFixed(2) : String(Number(usd.toPrecision(2)));
}
