import type { Expressed } from '../../bus/notifier.ts';
import type { Hint } from '../../store.ts';
import type { TaskRef } from '../../task.ts';
import type { Database } from './database.ts';

/** The prefix of tasks that somebody reads. */
const READ = 'r:';
const FIND = `
SELECT i.inbox FROM interests i JOIN inboxes b ON b.inbox = i.inbox
WHERE i.name IN (?, ?, ?, ?, ?, ?) AND b.until > ?
`;
const FIND_HELD = "SELECT tenant, record ->> 'worker' AS worker FROM tasks WHERE id = ? AND stage = 'held'";

/** What processes want to hear of, and which of them are there. In real time: the bus and its processes live in it. */
export class SqliteInterests {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  express(inbox: string, names: readonly string[], forMs: number): Promise<Expressed> {
    return this.#database.write(() => {
      const now = Date.now();
      const isKnown = this.#database.get('SELECT 1 FROM inboxes WHERE inbox = ?', [inbox]) !== undefined;
      this.#database.run('INSERT OR REPLACE INTO inboxes (inbox, until) VALUES (?, ?)', [inbox, now + forMs]);
      for (const name of names)
        this.#database.run('INSERT OR IGNORE INTO interests (name, inbox) VALUES (?, ?)', [name, inbox]);
      const old = this.#database.all('SELECT inbox FROM inboxes WHERE until < ? LIMIT 100', [now]);
      for (const { inbox: gone } of old) {
        this.#database.run('DELETE FROM interests WHERE inbox = ?', [String(gone)]);
        this.#database.run('DELETE FROM inboxes WHERE inbox = ?', [String(gone)]);
      }
      const { inboxes } = this.#database.get('SELECT count(*) AS inboxes FROM inboxes')!;
      const workers = names.flatMap((name) => this.#findWorkers(name, now));
      return { isKnown, inboxes: Number(inboxes), workers };
    });
  }

  #findWorkers(name: string, now: number): Expressed['workers'][number][] {
    const slash = name.lastIndexOf('/');
    if (!name.startsWith(READ)) return [];
    const id = name.slice(slash + 1);
    const { tenant, worker } = (this.#database.get(FIND_HELD, [id]) ?? {}) as { tenant?: string; worker?: string };
    if (tenant !== name.slice(READ.length, slash) || worker === undefined) return [];
    const rows = this.#database.all(FIND, [`w:${worker}`, '', '', '', '', '', now]);
    return rows.map(({ inbox }) => [String(inbox), id, tenant!, worker] as const);
  }

  /** Call it in the transaction of the change. */
  readers({ tenant, id }: TaskRef): readonly string[] {
    const rows = this.#database.all(FIND, [`${READ}${tenant}/${id}`, '', '', '', '', '', Date.now()]);
    return rows.map(({ inbox }) => String(inbox));
  }

  withdraw(inbox: string, names: readonly string[]): Promise<void> {
    return this.#database.write(() => {
      for (const name of names) this.#database.run('DELETE FROM interests WHERE inbox = ? AND name = ?', [inbox, name]);
    });
  }

  /** Returns the inboxes that want these hints. Call it in the transaction of the change. */
  find(hints: readonly Hint[]): (readonly [inbox: string, hint: Hint])[] {
    return hints.flatMap((hint): (readonly [inbox: string, hint: Hint])[] => {
      if (hint.type === 'offer') return [['', hint]];
      if (hint.type === 'feed' && hint.reader !== undefined) return [[hint.reader.split(' ')[0]!, hint]];
      const rows = this.#database.all(FIND, [...toNames(hint), Date.now()]);
      return [...new Set(rows.map(({ inbox }) => String(inbox)))].map((inbox) => [inbox, hint] as const);
    });
  }
}

/** The names under which processes want to hear of a change: always six. */
function toNames(hint: Hint): readonly string[] {
  if (hint.type === 'resync') return ['*', '', '', '', '', ''];
  if (hint.type === 'frame' || hint.type === 'offer') return [];
  if (hint.type === 'feed') return [`f:${hint.consumer}`, '', '', '', '', ''];
  const worker = `w:${hint.worker ?? ''}`;
  if (hint.type === 'ready' || hint.type === 'watched') return [worker, '', '', '', '', ''];
  const { id, tenant, conversation = '' } = hint;
  return ['*', `t:${tenant}`, `c:${tenant}/${conversation}`, `i:${id}`, `${READ}${tenant}/${id}`, worker];
}
