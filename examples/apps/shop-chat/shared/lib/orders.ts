// The orders of the shop. Its search is slow, as that of real shops is.
import { setTimeout as wait } from 'node:timers/promises';
import { db } from './db';

const SEARCH_MS = Number(process.env['SEARCH_MS'] ?? 3_000);

export async function findOrders(user: string, item: string, signal: AbortSignal | undefined): Promise<string> {
  note(user, 'search started');
  try {
    await wait(SEARCH_MS, undefined, { signal });
  } catch (error) {
    note(user, 'search stopped');
    throw error;
  }
  note(user, 'search ended');
  const rows = db.prepare('SELECT * FROM orders WHERE owner = ? AND item LIKE ?').all(user, `%${item}%`);
  return rows.map((row) => `Order ${row['id']}: ${row['item']}, ${row['state']}`).join('. ') || 'No such order';
}

export function refundOrder(user: string, id: number): string {
  const { changes } = db
    .prepare("UPDATE orders SET state = 'refunded' WHERE owner = ? AND id = ? AND state = 'paid'")
    .run(user, id);
  if (changes === 0) throw new Error(`Order ${id} cannot be refunded`);
  note(user, `refund ${id}`);
  return `Order ${id} is refunded`;
}

function note(user: string, what: string): void {
  db.prepare('INSERT INTO log (owner, what) VALUES (?, ?)').run(user, what);
}
