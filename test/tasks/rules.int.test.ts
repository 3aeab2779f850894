import { createPostgresStore } from '@whoa/tasks/internal';
import { expect, test } from 'vitest';
import { qualify } from '../../packages/tasks/src/ledger/postgres/layout.ts';
import { ADMISSION_TABLE } from '../../packages/tasks/src/ledger/rules/rules.ts';
import { STATUS_TABLE } from '../../packages/tasks/src/ledger/rules/status.ts';
import { borrowPostgres } from '../servers/borrow.ts';
import { query } from '../servers/query.ts';

type Cells = Readonly<Record<string, Readonly<Record<string, string>>>>;

const toCells = (table: Cells): [string, string, string][] =>
  Object.entries(table).flatMap(([row, cells]) =>
    Object.entries(cells).map(([column, to]): [string, string, string] => [row, column, to]),
  );

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
  const statuses = toCells(STATUS_TABLE);
  expect(await look('next_status', statuses)).toEqual(statuses);
  const admissions = toCells(ADMISSION_TABLE);
  expect(await look('admission', admissions)).toEqual(admissions);
});
