import { createPostgresStore } from '@whoa/tasks/internal';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import {
  ADMISSION_TABLE,
  GRACEFUL,
  LEVEL_RANKS,
  LIMITS,
  OVERDUE,
  SIZES,
} from '../../packages/tasks/src/rules/rules.ts';
import { byStatus, isFinalStatus, STATUS_TABLE } from '../../packages/tasks/src/status.ts';
import { qualify } from '../../packages/tasks/src/stores/postgres/layout.ts';
import { RULE_FILES } from '../../packages/tasks/src/stores/redis/lua/rule-files.ts';
import { borrowPostgres, borrowRedis } from '../servers/borrow.ts';
import { query } from '../servers/query.ts';

type Cells = Readonly<Record<string, Readonly<Record<string, string>>>>;

const toCells = (table: Cells): [string, string, string][] =>
  Object.entries(table).flatMap(([row, cells]) =>
    Object.entries(cells).map(([column, to]): [string, string, string] => [row, column, to]),
  );

test('the scripts that Redis runs have every cell of the rules', async () => {
  await using server = await borrowRedis();
  const client = new Redis(server.port, '127.0.0.1');
  const names = ['STATUS_AFTER', 'ADMISSION', 'LEVEL_RANKS', 'GRACEFUL', 'OVERDUE', 'LIMITS', 'SIZES', 'IS_FINAL'];
  const fields = names.map((name) => `${name} = ${name}`).join(', ');
  try {
    const text = await client.eval(`${RULE_FILES['rules.lua']!}\nreturn cjson.encode({ ${fields} })`, 0);
    const { STATUS_AFTER, ADMISSION, IS_FINAL, ...same } = JSON.parse(String(text)) as Record<string, Cells>;
    const turned = toCells(STATUS_AFTER!).map(([action, status, to]) => [status, action, to].join(' '));
    expect(turned.sort()).toEqual(
      toCells(STATUS_TABLE)
        .map((cell) => cell.join(' '))
        .sort(),
    );
    expect(ADMISSION).toEqual(ADMISSION_TABLE);
    expect(IS_FINAL).toEqual(byStatus(isFinalStatus));
    expect(same).toEqual({ LEVEL_RANKS, GRACEFUL, OVERDUE, LIMITS, SIZES });
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
  const statuses = toCells(STATUS_TABLE);
  expect(await look('next_status', statuses)).toEqual(statuses);
  const admissions = toCells(ADMISSION_TABLE);
  expect(await look('admission', admissions)).toEqual(admissions);
});
