// The database of an application: chats as rows in SQLite, with a version that every save checks.
import { DatabaseSync } from 'node:sqlite';
import type { ChatHistory } from '@whoa/server';
import type { UIMessage } from 'ai';

export type Save = Parameters<ChatHistory['save']>[0];

/** The fault of each save or load, by the name of the call. Each is called once, in order. */
interface Faults {
  readonly load: ((saveOrLoad: { signal: AbortSignal }) => unknown)[];
  readonly save: ((save: Save) => unknown)[];
}

export interface AppDatabase extends Disposable {
  readonly history: ChatHistory;
  readonly saves: readonly Save[];
  readonly faults: Faults;
  messages(chat: string): UIMessage[];
  /** Another part of the application writes a message. */
  write(chat: string, message: UIMessage): void;
}

/** Opens a database; in a file, several processes share it. */
export function openDatabase(file = ':memory:', timeoutMs = 5_000): AppDatabase {
  const db = new DatabaseSync(file, { timeout: 5_000 });
  db.exec(`
    CREATE TABLE IF NOT EXISTS chats (owner TEXT, id TEXT, version INTEGER, PRIMARY KEY (owner, id));
    CREATE TABLE IF NOT EXISTS messages
      (owner TEXT, chat TEXT, id TEXT, position INTEGER, body TEXT, PRIMARY KEY (owner, chat, id));`);
  const saves: Save[] = [];
  const faults: Faults = { load: [], save: [] };
  const readVersion = (owner: string, chat: string): number =>
    (db.prepare('SELECT version FROM chats WHERE owner = ? AND id = ?').get(owner, chat)?.['version'] as number) ?? 0;
  const read = (owner: string, chat: string): UIMessage[] =>
    db
      .prepare('SELECT body FROM messages WHERE owner = ? AND chat = ? ORDER BY position')
      .all(owner, chat)
      .map(({ body }) => JSON.parse(body as string) as UIMessage);
  const put = (owner: string, chat: string, message: UIMessage, position: number): void => {
    db.prepare('INSERT OR REPLACE INTO messages VALUES (?, ?, ?, ?, ?)').run(
      owner,
      chat,
      message.id,
      position,
      JSON.stringify(message),
    );
  };
  const raise = (owner: string, chat: string): number => {
    const version = readVersion(owner, chat) + 1;
    db.prepare('INSERT OR REPLACE INTO chats VALUES (?, ?, ?)').run(owner, chat, version);
    return version;
  };
  const inTransaction = <T>(work: () => T): T => {
    db.exec('BEGIN IMMEDIATE');
    try {
      return work();
    } finally {
      db.exec('COMMIT');
    }
  };
  return {
    saves,
    faults,
    messages: (chat) => read('ada', chat),
    write: (chat, message) =>
      inTransaction(() => {
        const known = read('ada', chat);
        const index = known.findIndex(({ id }) => id === message.id);
        put('ada', chat, message, index < 0 ? known.length : index);
        raise('ada', chat);
      }),
    history: {
      timeoutMs,
      async load(chat) {
        await faults.load.shift()?.(chat);
        const { chatId, principal } = chat;
        return { messages: read(principal.tenant, chatId), version: readVersion(principal.tenant, chatId) };
      },
      async save(change) {
        const { chatId, principal, messages, removedIds, expectedVersion } = change;
        saves.push(change);
        const answer = await faults.save.shift()?.(change);
        if (answer !== undefined) return answer as 'conflict';
        return inTransaction(() => {
          if (readVersion(principal.tenant, chatId) !== expectedVersion) return 'conflict';
          for (const id of removedIds)
            db.prepare('DELETE FROM messages WHERE owner = ? AND chat = ? AND id = ?').run(
              principal.tenant,
              chatId,
              id,
            );
          for (const [index, message] of messages.entries()) put(principal.tenant, chatId, message, index);
          return { version: raise(principal.tenant, chatId) };
        });
      },
    },
    [Symbol.dispose]: () => db.close(),
  };
}
