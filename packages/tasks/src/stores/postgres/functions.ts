import type { ClaimRef } from '../../delivery.ts';
import { LeaseLostError } from '../../errors.ts';
import type { Database } from './connection/database.ts';
import type { ChangeNotifier } from './notify/notifier.ts';
import { checkText } from './text.ts';

/** A function of the database and its arguments. */
export interface FunctionCall {
  /** The store's method, for errors. */
  readonly operation: string;
  readonly name: string;
  /** A function is called when the database is connected: then it is known what the store holds. */
  readonly values: readonly unknown[];
  /** The database notifies listeners itself, with the commit. */
  readonly isRung?: boolean;
}

/** The largest number that the columns hold. */
export const MAX_INT: number = 2 ** 31 - 1;

/** Calls the database: every operation is one function and one transaction. Listeners are notified after the commit. */
export class DatabaseFunctions {
  readonly #database: Database;
  readonly #notifier: ChangeNotifier;

  constructor(database: Database, notifier: ChangeNotifier) {
    this.#database = database;
    this.#notifier = notifier;
  }

  async call<T>({ isRung = false, ...call }: FunctionCall): Promise<T> {
    const { answer, rings } = await this.#database.ask<T>({ ...call, changes: true });
    this.#notifier.ring(rings, { isRung });
    return answer;
  }

  /** Runs one operation of a worker, whose claim must still be valid. */
  async callAsWorker<T>(operation: string, by: ClaimRef, values: readonly unknown[]): Promise<T> {
    checkClaim(by);
    const { id, epoch, session, claim } = by;
    const all = [id, epoch, session, claim, ...values];
    const answer = await this.call<T | { answer: 'lost' }>({ operation, name: operation, values: all });
    if ((answer as { answer?: string }).answer === 'lost') throw new LeaseLostError(id, epoch);
    return answer as T;
  }

  /** Runs a read, which can be repeated. */
  async read<T>(operation: string, name: string, values: readonly unknown[]): Promise<T> {
    return (await this.#database.ask<T>({ operation, changes: false, name, values })).answer;
  }
}

export function checkClaim({ id, epoch, session, claim }: ClaimRef): void {
  for (const [name, value] of Object.entries({ id, session, claim })) checkText(name, value);
  // No claim can have this epoch.
  if (!Number.isInteger(epoch) || Math.abs(epoch) > MAX_INT) throw new LeaseLostError(id, epoch);
}
