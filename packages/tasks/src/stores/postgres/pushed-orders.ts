import type { CancelReason, StopLevel } from '@whoa/core';
import type { Client } from 'pg';
import type { Hint } from '../../store.ts';

type CancelHint = Extract<Hint, { id: string }>;

interface OrderRow {
  readonly id: string;
  readonly tenant: string;
  readonly epoch: number;
  readonly level: StopLevel;
  readonly reason: CancelReason;
  readonly abortAt: number;
  readonly killAt: number;
  readonly undo: boolean;
}

/** So many orders are read at once; those that are rung meanwhile wait for the next time. */
const READ_MAX = 100;
/** Beyond these nothing waits: whoever is told asks for himself. */
const WAITING_MAX = 1_000;

const READ = `
SELECT t.id, t.tenant, t.epoch, t.stop_level AS level, t.stop_reason AS reason, t.stop_abort_at AS "abortAt",
  t.stop_kill_at AS "killAt", t.stop_undo AS undo
FROM whoa.tasks t WHERE t.stop_level IS NOT NULL AND t.id = `;

/**
 * Adds the order to each cancel that is rung. The bell proves nothing, for anybody with a connection can ring it, so the order
 * is read from the table, and on the connection that has just woken up: that is the shortest way there is.
 */
export class PushedOrders {
  readonly #connection: Client;
  readonly #sql: string;
  readonly #onHint: (hint: Hint) => void;
  #waiting: CancelHint[] = [];
  #reading = false;

  constructor(connection: Client, options: { qualifier: string; onHint: (hint: Hint) => void }) {
    this.#connection = connection;
    this.#sql = READ.replaceAll('whoa.', options.qualifier);
    this.#onHint = options.onHint;
  }

  /** Tells of a cancel, as soon as it is known what was ordered. If that cannot be known, without. */
  tell(hint: CancelHint): void {
    if (this.#waiting.length >= WAITING_MAX) {
      this.#onHint(hint);
      return;
    }
    this.#waiting.push(hint);
    if (this.#reading) return;
    this.#reading = true;
    this.#readAll().catch((error: unknown) => process.emitWarning(error as Error));
  }

  async #readAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const hints = this.#waiting.splice(0, READ_MAX);
      const rows = await this.#read(hints.map(({ id }) => id));
      for (const hint of hints) this.#onHint(withOrder(hint, rows.get(hint.id)));
    }
    this.#reading = false;
  }

  async #read(ids: string[]): Promise<ReadonlyMap<string, OrderRow>> {
    try {
      // One is what there usually is, and is found faster by itself.
      const question =
        ids.length === 1
          ? { name: 'whoa_order', text: `${this.#sql}$1`, values: ids }
          : { name: 'whoa_orders', text: `${this.#sql}ANY ($1)`, values: [ids] };
      const { rows } = await this.#connection.query<OrderRow>(question);
      return new Map(rows.map((row) => [row.id, row]));
    } catch {
      // The connection is lost; once there is another, everybody is told to look at everything.
      return new Map();
    }
  }
}

function withOrder(hint: CancelHint, row: OrderRow | undefined): CancelHint {
  // What was rung may name any tenant; what was ordered is only for those who may hear of that task.
  if (row === undefined || row.tenant !== hint.tenant) return hint;
  const { epoch, level, reason, abortAt, killAt, undo } = row;
  return { ...hint, order: { epoch, stop: { level, reason, abortAt, killAt, undo } } };
}
