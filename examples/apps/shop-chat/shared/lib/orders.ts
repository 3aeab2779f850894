// The orders of the shop. Its search and its bank are slow, as those of real shops are.
import { setTimeout as wait } from 'node:timers/promises';
import { db } from './db';

const SEARCH_MS = Number(process.env['SEARCH_MS'] ?? 3_000);
const REFUND_MS = Number(process.env['REFUND_MS'] ?? 2_000);

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

/** Takes no signal: once the bank is asked, no one can say whether it has paid. */
export async function refundOrder(user: string, id: number): Promise<string> {
  const move = db.prepare('UPDATE orders SET state = ? WHERE owner = ? AND id = ? AND state = ?');
  // Of two at the same time only one asks the bank.
  if (move.run('refunding', user, id, 'paid').changes === 0) throw new Error(`Order ${id} cannot be refunded`);
  note(user, `refund ${id} started`);
  await wait(REFUND_MS);
  move.run('refunded', user, id, 'refunding');
  note(user, `refund ${id}`);
  return `Order ${id} is refunded`;
}

function note(user: string, what: string): void {
  db.prepare('INSERT INTO log (owner, what) VALUES (?, ?)').run(user, what);
}
