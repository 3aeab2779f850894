// The calendars of the business, in SQLite. Every operation takes a while, as in real calendars.
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as wait } from 'node:timers/promises';

export type SlotState = 'free' | 'held' | 'booked';

export interface Slot {
  readonly at: string;
  readonly state: SlotState;
  readonly guest: string | null;
}

export interface CalendarOptions {
  readonly file: string;
  /** How long an operation takes. */
  readonly latencyMs: number;
}

const HOURS = ['09:00', '10:00', '11:00', '14:00', '15:00'];
/** The last slot is a long one. */
const LONG_SLOT = '15:00';

/** The price of a slot, in euros. */
export function getPrice(at: string): number {
  return at === LONG_SLOT ? 240 : 80;
}

/** The calendars of several owners. Two instances of the bot share them. */
export class Calendar implements Disposable {
  readonly #db: DatabaseSync;
  readonly #latencyMs: number;

  constructor({ file, latencyMs }: CalendarOptions) {
    this.#db = new DatabaseSync(file, { timeout: 5_000 });
    this.#latencyMs = latencyMs;
    this.#db.exec(`PRAGMA journal_mode = WAL;
      CREATE TABLE IF NOT EXISTS slots (owner TEXT, at TEXT, state TEXT, guest TEXT, PRIMARY KEY (owner, at));
      CREATE TABLE IF NOT EXISTS log (entry INTEGER PRIMARY KEY, owner TEXT, what TEXT);`);
  }

  /** Creates the slots of an owner, once. */
  open(owner: string): void {
    const insert = this.#db.prepare("INSERT OR IGNORE INTO slots VALUES (?, ?, 'free', NULL)");
    for (const at of HOURS) insert.run(owner, at);
  }

  slots(owner: string): readonly Slot[] {
    const rows = this.#db.prepare('SELECT at, state, guest FROM slots WHERE owner = ? ORDER BY at').all(owner);
    return rows as unknown as readonly Slot[];
  }

  /** The operations on a calendar, in order. */
  log(owner: string): readonly string[] {
    const rows = this.#db.prepare('SELECT what FROM log WHERE owner = ? ORDER BY entry').all(owner);
    return rows.map(({ what }) => String(what));
  }

  /** Searches for free slots, one at a time. It changes nothing, so it may be interrupted. */
  async *findFree(owner: string, signal: AbortSignal): AsyncGenerator<string> {
    this.#note(owner, 'find started');
    for (const { at, state } of this.slots(owner)) {
      await wait(this.#latencyMs / HOURS.length, undefined, { signal });
      if (state === 'free') yield at;
    }
    this.#note(owner, 'find ended');
  }

  /** Holds a slot for a guest. */
  async hold(owner: string, at: string, guest: string): Promise<boolean> {
    await wait(this.#latencyMs / HOURS.length);
    const isHeld = this.#change(owner, at, { from: 'free', to: 'held', guest });
    this.#note(owner, `hold ${at} ${isHeld ? 'done' : 'refused'}`);
    return isHeld;
  }

  /** Releases a hold. Doing it twice changes nothing. */
  async release(owner: string, at: string): Promise<void> {
    await wait(this.#latencyMs / HOURS.length);
    this.#change(owner, at, { from: 'held', to: 'free', guest: null });
    this.#note(owner, `release ${at}`);
  }

  /** Books a slot in two steps: between them the calendar would be broken, so it must not be interrupted. */
  async book(owner: string, at: string, guest: string): Promise<boolean> {
    this.#note(owner, `book ${at} started`);
    const isHeld = this.slots(owner).some((slot) => slot.at === at && slot.state === 'held' && slot.guest === guest);
    if (!isHeld && !this.#change(owner, at, { from: 'free', to: 'held', guest })) return false;
    await wait(this.#latencyMs);
    const isBooked = this.#change(owner, at, { from: 'held', to: 'booked', guest });
    this.#note(owner, `book ${at} done`);
    return isBooked;
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }

  #change(
    owner: string,
    at: string,
    { from, to, guest }: { from: SlotState; to: SlotState; guest: string | null },
  ): boolean {
    const { changes } = this.#db
      .prepare('UPDATE slots SET state = ?, guest = ? WHERE owner = ? AND at = ? AND state = ?')
      .run(to, guest, owner, at, from);
    return changes === 1;
  }

  #note(owner: string, what: string): void {
    this.#db.prepare('INSERT INTO log (owner, what) VALUES (?, ?)').run(owner, what);
  }
}
