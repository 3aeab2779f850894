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
  const { url } = JSON.parse(location) as { readonly url: string };
  const names = ids.map((id) => `'${id}'`).join();
  const sql = `SELECT mark FROM whoa.tasks WHERE id IN (${names}) ORDER BY array_position(ARRAY[${names}], id::text)`;
  const rows = await query(url, sql);
  return rows.map(({ mark }) => mark as string | null);
}
