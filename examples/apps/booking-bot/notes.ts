// What the bot must not forget between a delivery and the next one: in the database of the calendars, for every instance.
import { DatabaseSync } from 'node:sqlite';

/** How long an instance may take to send a question. */
const CLAIM_MS = 60_000;

export class Notes implements Disposable {
  readonly #db: DatabaseSync;

  constructor(file: string) {
    this.#db = new DatabaseSync(file, { timeout: 5_000 });
    this.#db.exec(`PRAGMA journal_mode = WAL;
      CREATE TABLE IF NOT EXISTS done (delivery TEXT PRIMARY KEY);
      CREATE TABLE IF NOT EXISTS asked (question TEXT PRIMARY KEY, message TEXT, claimed_at INTEGER);`);
  }

  /** A stop that is delivered again must not stop what the guest has written since, and an owner's yes gets one reply. */
  isDone(delivery: string): boolean {
    return this.#db.prepare('SELECT 1 FROM done WHERE delivery = ?').get(delivery) !== undefined;
  }

  /** Returns whether it was not done before. */
  noteDone(delivery: string): boolean {
    return this.#db.prepare('INSERT OR IGNORE INTO done VALUES (?)').run(delivery).changes === 1;
  }

  /** Of all instances one asks a question. If it crashes before it has, another one may ask a minute later. */
  claimQuestion(question: string): boolean {
    const now = Date.now();
    const { changes } = this.#db
      .prepare(
        `INSERT INTO asked VALUES (?, NULL, ?) ON CONFLICT DO UPDATE SET claimed_at = excluded.claimed_at
         WHERE message IS NULL AND claimed_at < ?`,
      )
      .run(question, now, now - CLAIM_MS);
    return changes === 1;
  }

  /** `message`: the messenger's id of the message that asked the owner. Without one, only the code names the question. */
  noteAsked(question: string, message: string = question): void {
    this.#db.prepare('UPDATE asked SET message = ? WHERE question = ?').run(message, question);
  }

  /** The messenger did not take the message. */
  releaseQuestion(question: string): void {
    this.#db.prepare('DELETE FROM asked WHERE question = ?').run(question);
  }

  findAsked(message: string): string | undefined {
    const row = this.#db.prepare('SELECT question FROM asked WHERE message = ?').get(message);
    return row === undefined ? undefined : String(row['question']);
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }
}
