import { createPostgresStore } from '@whoa/tasks/internal';
import { expect, test } from 'vitest';
import { borrowPostgres } from '../servers/borrow.ts';
import { query } from '../servers/query.ts';

/** Intentional: text literals become json, and counts become 32-bit numbers. */
const MEANT = [
  'target type is different type than source type',
  // The hints are set next to the result, in the statement that has the rows.
  'append_many: too many attributes for target variables',
  'finish_many: too many attributes for target variables',
  'order_stop: composite OUT variable "stopped" is not single argument',
];

const CHECK = `SELECT p.proname || ': ' || found.message AS problem
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang AND l.lanname = 'plpgsql',
  plpgsql_check_function_tb(p.oid, fatal_errors := false) found
WHERE p.pronamespace = $1::regnamespace`;

async function hasExtension(url: string): Promise<boolean> {
  const rows = await query(url, "SELECT FROM pg_available_extensions WHERE name = 'plpgsql_check'");
  return rows.length > 0;
}

test('plpgsql_check finds no fault in the functions', async ({ skip }) => {
  await using server = await borrowPostgres();
  // CI installs it.
  skip(process.env['CI'] === undefined && !(await hasExtension(server.url)), 'plpgsql_check is not installed');
  await using store = createPostgresStore({ url: server.url, schema: 'checked' });
  await store.get({ tenant: 'acme', id: 'none' });
  await query(server.url, 'CREATE EXTENSION IF NOT EXISTS plpgsql_check');
  const look = async (): Promise<unknown[]> =>
    (await query(server.url, CHECK, ['checked_v3'])).map((row) => row['problem']);
  const isMeant = (problem: unknown): boolean => MEANT.some((one) => String(problem).includes(one));
  const problems = await look();
  expect(problems.filter((one) => !isMeant(one))).toEqual([]);
  for (const one of MEANT) expect(problems.join('\n')).toContain(one);

  await query(
    server.url,
    `CREATE FUNCTION checked_v3.wrong(task checked.tasks) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN task.stages; END $$`,
  );
  expect(await look()).toContainEqual('wrong: record "task" has no field "stages"');
});
