// The generated parts of the Postgres store's SQL files: `rules.sql` with the tables; in the other files every constant
// with its name behind it, such as `100 /*maxPromoted*/`, and the assignments below every line that names a transition,
// such as `-- Rule: release and ready; released = own_claim`.

import { BACKGROUND } from '../../packages/tasks/src/ledger/rules/background.ts';
import { FORMAT, OLDEST_FORMAT } from '../../packages/tasks/src/ledger/rules/format.ts';
import * as rules from '../../packages/tasks/src/ledger/rules/rules.ts';
import { STATUS_TABLE } from '../../packages/tasks/src/ledger/rules/status.ts';
import { toLostMessage } from '../../packages/tasks/src/ledger/rules/suspects.ts';
import { TRANSITIONS } from '../../packages/tasks/src/ledger/rules/transitions.ts';
import { MAX_SHOWN_TASKS } from '../../packages/tasks/src/overview.ts';
import { type Transitions, toAssignments } from './sql-transitions.ts';

const { SETTLE, SUSPECTS, UNDO, OFFERED, OFFERED_SUSPECTS, AFTER_RESERVED, OWN_TENANTS, LEVEL_RANKS, ADMISSION_TABLE } =
  rules;

const MAX_COLUMNS = 130;

/** The constants that a file may use. */
const CONSTANTS: Readonly<Record<string, string | number>> = {
  ...rules.LIMITS,
  ...rules.GRACEFUL,
  OVERDUE: JSON.stringify(rules.OVERDUE),
  historyBytes: rules.SIZES.historyBytes,
  retentionMs: rules.DEFAULTS.retentionMs,
  STATUSES: `{${Object.keys(STATUS_TABLE).join()}}`,
  SETTLE,
  SUSPECTS,
  UNDO,
  OFFERED,
  OFFERED_SUSPECTS,
  offerGapMs: rules.LIMITS.repeatedOfferMs - rules.LIMITS.lostOfferMs,
  AFTER_RESERVED,
  OWN_TENANTS,
  AFTER_SUSPECTS: textAfter(SUSPECTS),
  AFTER_UNDO: textAfter(UNDO),
  reservedLength: SUSPECTS.length,
  BACKGROUND,
  BACKGROUND_PATTERN: `${BACKGROUND}%`,
  FORMAT,
  OLDEST_FORMAT,
  MAX_SHOWN_TASKS,
  lostMessage: toLostMessage('%s'),
};

/** The first text after all that start with another, in byte order. */
function textAfter(start: string): string {
  return `${start.slice(0, -1)}${String.fromCharCode(start.charCodeAt(start.length - 1) + 1)}`;
}

/** A literal and its name, with which a number may be added or by which it may be divided. */
const STAMPED = /(?:'(?:[^']|'')*'|[\d.]+) \/\*(\w+)(?: ([+/]) (\d+))?\*\//g;

/** Returns a file with the current value of every constant that it names. */
export function stampConstants(text: string, constants = CONSTANTS): string {
  return text.replaceAll(STAMPED, (stamp: string, ...parts: (string | undefined)[]) => {
    const [name = '', operator, operand] = parts;
    const value = constants[name];
    if (value === undefined) throw new Error(`${stamp}: no rule has this name`);
    const by = Number(operand);
    const result = operator === undefined ? value : operator === '+' ? Number(value) + by : Number(value) / by;
    return `${toSqlLiteral(result)} ${stamp.slice(stamp.lastIndexOf('/*'))}`;
  });
}

function toSqlLiteral(value: string | number): string {
  return typeof value === 'number' ? `${value}` : `'${value.replaceAll("'", "''")}'`;
}

type Cells = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** A function that looks up a cell of a table. */
function toLookup(table: Cells, { name, row, column }: { name: string; row: string; column: string }): string {
  const rows = Object.entries(table).map(([key, cells]) => {
    const columns = Object.entries(cells).map(([cell, to]) => `WHEN ${toSqlLiteral(cell)} THEN ${toSqlLiteral(to)}`);
    return `    WHEN ${toSqlLiteral(key)} THEN CASE ${column} ${columns.join(' ')} END`;
  });
  return `CREATE FUNCTION fn.${name}(${row} text, ${column} text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE ${row}
${rows.join('\n')} END
$$;`;
}

const RANKS = Object.entries(LEVEL_RANKS).map(([level, rank]) => `WHEN ${toSqlLiteral(level)} THEN ${rank}`);

const TABLES = `-- Written by \`npm run rules\` from status.ts and rules.ts.

-- Returns the next status of a task, or why the action is rejected.
${toLookup(STATUS_TABLE, { name: 'next_status', row: 'status', column: 'p_action' })}

-- Returns what a policy does, by the status of the current task.
${toLookup(ADMISSION_TABLE, { name: 'admission', row: 'policy', column: 'current' })}

-- Returns how hard a level is.
CREATE FUNCTION fn.to_rank(level text) RETURNS int LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE level ${RANKS.join(' ')} ELSE 0 END
$$;
`;

/** A line that names a rule, and the assignments below it, up to the text that must follow them. */
const RULED = /^( *)-- (Rule|Columns|Values): (.+)\n((?:(?! *(?:WHERE|FROM|\))).*\n)*)/gm;

/** Returns a file with the current assignments of every transition that it names. */
export function writeTransitions(text: string, transitions: Transitions = TRANSITIONS): string {
  return text.replaceAll(RULED, (...[, indent, what, rule, before]: string[]) => {
    if (before!.includes(';')) throw new Error(`-- ${what}: ${rule}: neither WHERE, FROM nor ) follows`);
    const words = toAssignments(rule!, transitions).map(([column, value]) => {
      return { Rule: `${column} = ${value}`, Columns: column, Values: value }[what!]!;
    });
    return `${indent}-- ${what}: ${rule}\n${fill(words, indent!)}\n`;
  });
}

/** Puts as many as fit into each line. */
function fill(words: readonly string[], indent: string): string {
  const lines = [`${indent}${words[0]}`];
  for (const word of words.slice(1)) {
    const longer = `${lines.at(-1)}, ${word}`;
    if (longer.length < MAX_COLUMNS) lines[lines.length - 1] = longer;
    else lines.push(`${lines.pop()},`, `${indent}${word}`);
  }
  return lines.join('\n');
}

/** Returns the files as they must be, by their names. */
export function createSqlFiles(files: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const stamped = Object.entries(files).map(([name, text]) => [name, writeTransitions(stampConstants(text))] as const);
  return { ...Object.fromEntries(stamped), 'rules.sql': TABLES };
}
