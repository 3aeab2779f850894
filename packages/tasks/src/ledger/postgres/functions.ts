import type { ChangeNotifier } from '../../bus/notifier.ts';
import type { ClaimRef } from '../../delivery/worker-store.ts';
import { LeaseLostError } from '../../errors.ts';
import type { Database, NamedValues } from './connection/database.ts';
import { toHint } from './hints.ts';
import { checkText } from './text.ts';

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

  /** Runs a function of the database for an operation of the store. */
  async call<T>(operation: string, name: string, values: NamedValues): Promise<T> {
    const { answer, notifications } = await this.#database.ask<T>({ operation, changes: true, name, values });
    for (const [inbox, hint] of notifications) this.#notifier.notify(inbox, toHint(hint));
    return answer;
  }

  /** Runs one operation of a worker, whose claim must still be valid. */
  async callAsWorker<T>(operation: string, by: ClaimRef, values: NamedValues): Promise<T> {
    checkClaim(by);
    const { id, epoch, session, claim } = by;
    const all = { task_id: id, own_epoch: epoch, own_session: session, own_claim: claim, ...values };
    const answer = await this.call<T | { result: 'lost' }>(operation, operation, all);
    if ((answer as { result?: string }).result === 'lost') throw new LeaseLostError(id, epoch);
    return answer as T;
  }

  /** Runs a read, which can be repeated. */
  async read<T>(operation: string, name: string, values: NamedValues): Promise<T> {
    return (await this.#database.ask<T>({ operation, changes: false, name, values })).answer;
  }
}

export function checkClaim({ id, epoch, session, claim }: ClaimRef): void {
  for (const [name, value] of Object.entries({ id, session, claim })) checkText(name, value);
  // No claim can have this epoch.
  if (!Number.isInteger(epoch) || Math.abs(epoch) > MAX_INT) throw new LeaseLostError(id, epoch);
}
