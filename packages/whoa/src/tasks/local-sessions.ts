import type { SessionRecord, SessionStore, SessionSummary } from '@whoa/acp';
import type { createSqliteSessions } from '@whoa/tasks/internal';
import type { WhoaConfig } from '../config/config.ts';
import { getStore } from './local-tasks.ts';

type Sessions = ReturnType<typeof createSqliteSessions<SessionRecord>>;

/**
 * Keeps editor sessions in the SQLite file of the tasks, or in the default file of this user if tasks are in another store.
 * The file is opened on first use.
 */
export function createLocalSessions(config: Pick<WhoaConfig, 'store'> = {}): SessionStore & AsyncDisposable {
  const store = getStore(config);
  const file = store !== undefined && 'backend' in store && store.backend === 'sqlite' ? store.file : undefined;
  let opened: Promise<Sessions> | undefined;
  const open = async (): Promise<Sessions> => {
    const { createSqliteSessions } = await import('@whoa/tasks/internal');
    return createSqliteSessions<SessionRecord>(file === undefined ? {} : { file });
  };
  const sessions = (): Promise<Sessions> =>
    (opened ??= open().catch((error: unknown) => {
      // Another process may have locked the file. The next call tries again.
      opened = undefined;
      throw error;
    }));
  return {
    load: async (id) => (await sessions()).load(id),
    save: async (record) => (await sessions()).save(record),
    async list(filter) {
      const page = await (await sessions()).list(filter);
      return { sessions: page.sessions.map(toSummary), ...(page.next !== undefined && { nextCursor: page.next }) };
    },
    remove: async (id) => (await sessions()).remove(id),
    async [Symbol.asyncDispose]() {
      await (await opened?.catch(() => undefined))?.[Symbol.asyncDispose]();
    },
  };
}

function toSummary({ settings, createdAt, ...summary }: Omit<SessionRecord, 'messages'>): SessionSummary {
  return summary;
}
