import type { TaskStoreConfig } from '@whoa/tasks';
import { Redis } from 'ioredis';
import { query } from '../servers/query.ts';

/** The mark that the next release gives to tasks, as it is stored. */
export async function readMarks(location: string, ids: readonly string[]): Promise<(string | null)[]> {
  if (!location.startsWith('{')) {
    const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
    const database = new DatabaseSync(location);
    const find = database.prepare('SELECT mark FROM tasks WHERE id = ?');
    const marks = ids.map((id) => find.get(id)!['mark'] as string | null);
    database.close();
    return marks;
  }
  const config = JSON.parse(location) as TaskStoreConfig & { readonly url: string };
  if (config.backend === 'postgres') {
    const names = ids.map((id) => `'${id}'`).join();
    const sql = `SELECT mark FROM whoa.tasks WHERE id IN (${names}) ORDER BY array_position(ARRAY[${names}], id::text)`;
    const rows = await query(config.url, sql);
    return rows.map(({ mark }) => mark as string | null);
  }
  const client = new Redis(config.url);
  const marks = await Promise.all(ids.map((id) => client.hget(`whoa:{s0}:task:${id}`, 'mark')));
  client.disconnect();
  return marks;
}
