import { createPostgresStore } from '@whoa/tasks';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { toLua } from '../../packages/tasks/src/rules/literals.ts';
import { ADMISSION_TABLE, LIMITS } from '../../packages/tasks/src/rules/rules.ts';
import { STATUS_TABLE } from '../../packages/tasks/src/status.ts';
import { qualify } from '../../packages/tasks/src/stores/postgres/layout.ts';
import { SCRIPTS } from '../../packages/tasks/src/stores/redis/scripts.ts';
import { borrowPostgres, borrowRedis } from '../servers/borrow.ts';
import { query } from '../servers/query.ts';

type Cells = Readonly<Record<string, Readonly<Record<string, string>>>>;

const cellsOf = (table: Cells): [string, string, string][] =>
  Object.entries(table).flatMap(([row, cells]) =>
    Object.entries(cells).map(([column, to]): [string, string, string] => [row, column, to]),
  );

/** One move of the table: what it does to each status. */
const columnOf = (action: string): Record<string, string> =>
  Object.fromEntries(Object.entries(STATUS_TABLE as Cells).map(([status, row]) => [status, row[action]!]));

/** A table as it stands in the text of a script. */
function tableIn(script: keyof typeof SCRIPTS, pattern: RegExp): string {
  const found = pattern.exec(SCRIPTS[script].source)?.[1];
  if (found === undefined) throw new Error(`the script '${script}' has no table ${pattern}`);
  return found;
}

test('the scripts that Redis runs have every cell of the rules', async () => {
  await using server = await borrowRedis();
  const client = new Redis(server.port, '127.0.0.1');
  const evaluate = async (lua: string): Promise<unknown> =>
    JSON.parse(String(await client.eval(`return cjson.encode(${lua})`, 0)));
  try {
    const admission = tableIn('create', /local admission = \((\{.*\})\)\[policy\]/u);
    expect(await evaluate(admission)).toEqual(ADMISSION_TABLE);
    expect(await evaluate(tableIn('take', /local CLAIMED = (\{.*\})$/mu))).toEqual(columnOf('claim'));
    expect(await evaluate(tableIn('sweep', /local RELEASED = (\{.*\})$/mu))).toEqual(columnOf('release'));
    expect(await evaluate(tableIn('release', /local RELEASED = (\{.*\})$/mu))).toEqual(columnOf('release'));
    for (const script of ['cancel', 'cancelConversation', 'create', 'take'] as const) {
      expect(await evaluate(tableIn(script, /local CANCELLED = (\{.*\})$/mu))).toEqual(columnOf('cancel'));
    }
    const ends = { success: columnOf('success'), failed: columnOf('failed'), cancelled: columnOf('cancelled') };
    expect(await evaluate(tableIn('finish', /local ENDS = (\{.*\})$/mu))).toEqual(ends);
    expect(await evaluate(toLua(LIMITS))).toEqual(LIMITS);
  } finally {
    client.disconnect();
  }
});

test('the functions that Postgres runs have every cell of the rules', async () => {
  await using server = await borrowPostgres();
  await using store = createPostgresStore({ url: server.url, schema: 'rules' });
  await store.get({ tenant: 'acme', id: 'none' });
  const look = async (name: string, cells: [string, string, string][]): Promise<unknown[]> => {
    const sql = `SELECT a, b, fn.${name}(a, b) AS cell FROM unnest($1::text[], $2::text[]) AS asked (a, b)`;
    const asked = [cells.map(([row]) => row), cells.map(([, column]) => column)];
    const rows = await query(server.url, qualify(sql, 'rules'), asked);
    return rows.map(({ a, b, cell }) => [a, b, cell]);
  };
  const statuses = cellsOf(STATUS_TABLE);
  expect(await look('next_status', statuses)).toEqual(statuses);
  const admissions = cellsOf(ADMISSION_TABLE);
  expect(await look('admission', admissions)).toEqual(admissions);
});
