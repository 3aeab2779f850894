import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type SessionRecord, type SessionStore, type SessionSummary, toPage, toSummary } from './store.ts';

const ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;
/** A list reads at most this many files. */
const MAX_SESSIONS = 2_000;

/**
 * Keeps each session in its own file, in a folder that only the user can read.
 *
 * @returns A store that keeps one file per session.
 * @throws RangeError, from `save`, when a session id is not valid as a file name.
 */
export function createFileSessions({ folder }: { readonly folder: string }): SessionStore {
  const toPath = (id: string): string => join(folder, `${id}.json`);
  return {
    load: (id) => (ID.test(id) ? readRecord(toPath(id)) : Promise.resolve(undefined)),
    async save(record) {
      if (!ID.test(record.id)) throw new RangeError(`id: '${record.id}' is not valid as a file name`);
      const path = toPath(record.id);
      const temporary = `${path}.${crypto.randomUUID()}.tmp`;
      await mkdir(folder, { recursive: true, mode: 0o700 });
      try {
        await writeFile(temporary, JSON.stringify(record), { mode: 0o600, flag: 'wx' });
        // The umask applies to the mode above, but not to this one.
        await chmod(temporary, 0o600);
        await rename(temporary, path);
      } catch (error) {
        await rm(temporary, { force: true });
        throw error;
      }
    },
    list: async (filter = {}) => toPage(await readSummaries(folder), filter),
    remove: (id) => (ID.test(id) ? rm(toPath(id), { force: true }) : Promise.resolve()),
  };
}

async function readRecord(path: string): Promise<SessionRecord | undefined> {
  const text = await readFile(path, 'utf8').catch(ignoreMissing);
  if (text === undefined) return undefined;
  try {
    const record = JSON.parse(text) as SessionRecord;
    if (typeof record.id === 'string' && Array.isArray(record.messages)) return record;
  } catch {
    // Reported below.
  }
  throw new Error(`${path} does not contain a session; move or delete the file`);
}

/** Skip files that cannot be read: one broken session must not hide the others. */
async function readSummaries(folder: string): Promise<SessionSummary[]> {
  const names = (await readdir(folder).catch(ignoreMissing)) ?? [];
  const summaries: SessionSummary[] = [];
  for (const name of names.filter((one) => one.endsWith('.json')).slice(0, MAX_SESSIONS)) {
    const record = await readRecord(join(folder, name)).catch(() => undefined);
    if (record !== undefined) summaries.push(toSummary(record));
  }
  return summaries;
}

/** There is nothing to read. */
function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
}
