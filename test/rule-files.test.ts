import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { RULE_FILES } from '../packages/tasks/src/ledger/postgres/sql/rule-files.ts';
import { TRANSITIONS, type Transition } from '../packages/tasks/src/ledger/rules/transitions.ts';
import { lintSql } from '../scripts/lint-sql.ts';
import { createSqlFiles, stampConstants, writeTransitions } from '../scripts/rules/sql.ts';
import { toAssignments } from '../scripts/rules/sql-transitions.ts';
import { ROOT } from './docs/pages.ts';

test('the files have the current rules', () => {
  for (const [name, text] of Object.entries(createSqlFiles(RULE_FILES))) {
    expect(readFileSync(join(ROOT, 'packages/tasks/src/ledger/postgres/sql', name), 'utf8'), name).toBe(text);
  }
});

test('a constant that changed is written wherever a file names it', () => {
  const sql = "LIMIT 7 /*most*/ || 'it''s' /*name*/ > 8 /*most + 1*/ AND x < 3.5 /*most / 2*/ -- the worker's 'queue'";
  expect(stampConstants(sql, { most: 10, name: "o'clock" })).toBe(
    "LIMIT 10 /*most*/ || 'o''clock' /*name*/ > 11 /*most + 1*/ AND x < 5 /*most / 2*/ -- the worker's 'queue'",
  );
});

test('a name that no rule has is rejected', () => {
  expect(() => stampConstants('LIMIT 7 /*maxMoves*/')).toThrow('7 /*maxMoves*/: no rule has this name');
});

const wrap = (body: string): string =>
  `CREATE FUNCTION fn.a(x int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN ${body} END $$;\n`;
const called = '-- Reads: a. Locks and writes: nothing. Returns: b.\n';

test.each([
  ['SQL that is none', 'CREATE TABLE a (b int c);\n', 'SQL: syntax error at or near "c"'],
  ['a body that is none', called + wrap('IF x = 1 THEN RETURN 2;'), 'a: syntax error at end of input'],
  [
    'a query in a body that is none',
    called + wrap('RETURN (SELECT FROM WHERE);'),
    'a: syntax error at or near "WHERE"',
  ],
  ['a variable that is not declared', called + wrap('y := 1;'), 'a: "y" is not a known variable'],
  ['an operation that says nothing', wrap('RETURN x;'), 'a: say above it what it Reads:'],
  ['an operation that hides its locks', `-- Reads: a. Returns: b.\n${wrap('RETURN x;')}`, 'a: say above it'],
  ['a line that is too long', `-- ${'a'.repeat(140)}\n`, 'line 1 has 143 characters'],
  ['spaces at the end of a line', '-- a \n', 'line 1 has a tab'],
  ['no line break at the end', '-- a', 'it does not end'],
])('%s is complained about', (_name, sql, problem) => {
  expect(lintSql({ 'a.sql': sql })).toEqual([expect.stringMatching(`^a.sql: ${problem}`)]);
});

test('a function that another calls need not declare its reads', () => {
  expect(lintSql({ 'a.sql': wrap('RETURN x;'), 'b.sql': 'SELECT fn.a(1);\n' })).toEqual([]);
});

const MOVES = {
  pause: {
    next: 'release',
    set: { stage: 'queue', note: 'it' },
    plus: { epoch: 2, attempts: -1 },
    hasPendingOrders: 'ordered',
  },
  go: {
    set: { stage: 'ready', commands: [] },
    given: ['lostClaim'],
    now: ['stageAt'],
    first: ['startedAt'],
    none: ['hasPendingOrders'],
  },
} as const;

test('every kind of change in a transition is an assignment', () => {
  expect(toAssignments('pause', MOVES)).toEqual([
    ['status', "fn.next_status(t.status, 'release')"],
    ['stage', "'queue'"],
    ['note', "'it'"],
    ['epoch', 't.epoch + 2'],
    ['attempts', 'greatest(0, t.attempts - 1)'],
    ['has_pending_orders', 't.order_number > 0'],
    ['ready_queue', 'NULL'],
  ]);
  expect(toAssignments('go; lostClaim = f(a, b)', MOVES)).toEqual([
    ['stage', "'ready'"],
    ['commands_waiting', '0'],
    ['lost_claim', 'f(a, b)'],
    ['stage_at', 'now'],
    ['started_at', 'coalesce(t.started_at, now)'],
    ['has_pending_orders', 'false'],
    ['ready_queue', 'fn.to_ready_queue(t.agent, t.status, t.stop_undo, t.attempts)'],
  ]);
});

test('transitions that follow each other are one assignment of each column, and the ready queue is that of the new values', () => {
  const after = Object.fromEntries(toAssignments('pause and go', MOVES));
  expect(after['has_pending_orders']).toBe('false');
  expect(after['ready_queue']).toBe(
    "fn.to_ready_queue(t.agent, fn.next_status(t.status, 'release'), t.stop_undo, greatest(0, t.attempts - 1))",
  );
});

test.each([
  ['stop', "there is no transition 'stop'"],
  ['go; claim = x', "it is not given 'claim'"],
])('a rule that cannot be is rejected: %s', (rule, problem) => {
  expect(() => toAssignments(rule, MOVES)).toThrow(`-- Rule: ${rule}: ${problem}`);
});

test('a new field of a transition is written wherever a file names the transition', () => {
  const sql = `UPDATE t SET x = 1,
  -- Rule: go
  stage = 'old'
WHERE true;
INSERT INTO t (
  -- Columns: pause
) SELECT
  -- Values: pause
  1, 2
FROM x;
`;
  const more = { ...MOVES, go: { set: { stage: 'ready', mark: 1 } } };
  expect(writeTransitions(sql, more)).toBe(`UPDATE t SET x = 1,
  -- Rule: go
  stage = 'ready', mark = 1, ready_queue = fn.to_ready_queue(t.agent, t.status, t.stop_undo, t.attempts)
WHERE true;
INSERT INTO t (
  -- Columns: pause
  status, stage, note, epoch, attempts, has_pending_orders, ready_queue
) SELECT
  -- Values: pause
  fn.next_status(t.status, 'release'), 'queue', 'it', t.epoch + 2, greatest(0, t.attempts - 1), t.order_number > 0, NULL
FROM x;
`);
  expect(() => writeTransitions('-- Rule: go\nx = 1;\n', MOVES)).toThrow(
    '-- Rule: go: neither WHERE, FROM nor ) follows',
  );
});

test('no statement assigns to the status or the stage of a task by hand, but those that stop it', () => {
  const updates = Object.values(RULE_FILES).flatMap(
    (text) => text.match(/UPDATE whoa\.tasks t SET[^;]*?(?=WHERE|FROM)/g) ?? [],
  );
  const byHand = updates.filter((one) =>
    /(?<!t\.)\b(?:status|stage|stage_at|epoch|session) = /.test(one.split('-- Rule:')[0]!),
  );
  expect(updates.length).toBeGreaterThan(15);
  expect(byHand).toEqual([expect.stringContaining("'cancel')"), expect.stringContaining("'cancel')")]);
});

const toFields = ({
  next,
  set,
  plus,
  given = [],
  now = [],
  first = [],
  none = [],
  hasPendingOrders,
}: Transition): readonly string[] => [
  ...(next === undefined ? [] : ['status']),
  ...Object.keys({ ...set, ...plus }),
  ...given,
  ...now,
  ...first,
  ...none,
  ...(hasPendingOrders === undefined ? [] : ['hasPendingOrders']),
];

test.each(Object.entries<Transition>(TRANSITIONS))('%s changes the same fields in SQL', (name, rule) => {
  const fields = toFields(rule);
  const given = (rule.given ?? []).map((field) => `${field} = x`).join(', ');
  const columns = toAssignments(given === '' ? name : `${name}; ${given}`, TRANSITIONS).map(([column]) => column);
  // The ready queue is part of the stage, and the commands of a task are counted in it.
  const named = columns
    .filter((column) => column !== 'ready_queue')
    .map((column) => column.replace('commands_waiting', 'commands'));
  const snake = fields.map((field) => field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
  expect(named.toSorted()).toEqual(snake.toSorted());
});
