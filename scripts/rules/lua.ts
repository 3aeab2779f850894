// The rules that Lua shares with TypeScript, as the texts of stores/redis/lua/rules.lua and transitions.lua.
import { MAX_SHOWN_TASKS } from '../../packages/tasks/src/overview.ts';
import { BACKGROUND } from '../../packages/tasks/src/rules/background.ts';
import { FORMAT, OLDEST_FORMAT } from '../../packages/tasks/src/rules/format.ts';
import * as rules from '../../packages/tasks/src/rules/rules.ts';
import { toLostMessage } from '../../packages/tasks/src/rules/suspects.ts';
import { TRANSITIONS, type Transition } from '../../packages/tasks/src/rules/transitions.ts';
import { byStatus, isFinalStatus, STATUS_TABLE, type StatusAction } from '../../packages/tasks/src/status.ts';
import { STORED } from '../../packages/tasks/src/stores/redis/options.ts';

const { ADMISSION_TABLE, GRACEFUL, LEVEL_RANKS, LIMITS, OVERDUE, SETTLE, SIZES, SUSPECTS, UNDO } = rules;
const ACTIONS: readonly StatusAction[] = ['claim', 'release', 'cancel', 'success', 'failed', 'cancelled'];

/** Values with the same name in Lua, with the TypeScript name where it differs. */
const VALUES: readonly (readonly [name: string, value: unknown, about?: string])[] = [
  ['FORMAT', FORMAT, 'The newest format of stored data that this version can use, and the oldest.'],
  ['OLDEST_FORMAT', OLDEST_FORMAT],
  ['STORED', STORED, 'The settings that the store holds.'],
  ['STATUSES', Object.keys(STATUS_TABLE), 'In the order of the table.'],
  ['IS_FINAL', byStatus(isFinalStatus)],
  [
    'STATUS_AFTER',
    Object.fromEntries(ACTIONS.map((action) => [action, byStatus((status) => STATUS_TABLE[status][action])])),
    'By the action and the status before: the status after it, or why it is rejected.',
  ],
  ['ADMISSION', ADMISSION_TABLE, 'By the policy and the status of the current task: what happens to a new one.'],
  ['LEVEL_RANKS', LEVEL_RANKS],
  ['GRACEFUL', GRACEFUL],
  ['OVERDUE', OVERDUE],
  ['LOST_MESSAGE', toLostMessage('%d')],
  ['SETTLE', SETTLE, 'Ready queues: of tasks to settle, and how those of suspects and of tasks to undo start.'],
  ['SUSPECTS', SUSPECTS],
  ['UNDO', UNDO],
  ['BACKGROUND', BACKGROUND],
  ['LIMITS', LIMITS],
  ['SIZES', SIZES],
  ['MAX_SHOWN_TASKS', MAX_SHOWN_TASKS],
];

export function toLuaRules(): string {
  const lines = VALUES.flatMap(([name, value, about]) => [
    ...(about === undefined ? [] : [`-- ${about}`]),
    `local ${name} = ${toLua(value)}`,
  ]);
  return ['-- Written by `npm run rules` from the rules in TypeScript.', ...lines, ''].join('\n');
}

/** Converts plain data to a Lua literal. */
function toLua(value: unknown, indent = ''): string {
  if (typeof value === 'string') return `'${value.replaceAll(/['\\]/g, '\\$&')}'`;
  if (typeof value !== 'object' || value === null) return `${value as number}`;
  const isList = Array.isArray(value);
  const fields = Object.entries(value).map(([name, field]: [string, unknown]) => {
    const text = toLua(field, `${indent}  `);
    return isList ? text : `${name} = ${text}`;
  });
  const line = `{ ${fields.join(', ')} }`;
  if (line.length + indent.length < 128 && !line.includes('\n')) return line;
  return `{\n${fields.map((field) => `${indent}  ${field},\n`).join('')}${indent}}`;
}

/** Redis stores these under separate keys. */
const ELSEWHERE = new Set(['outcome', 'commands']);
/** Nothing reads when a held task became ready: leaving it there saves a command. */
const LEFT = new Set(['hold stageAt']);
const MAX_COLUMNS = 138;

/** One function for each transition, which puts its fields into a task and does not save it. */
export function toLuaTransitions(transitions: Readonly<Record<string, Transition>> = TRANSITIONS): string {
  const functions = Object.entries(transitions).map(([name, rule]) => {
    const given = (rule.given ?? []).filter((field) => !ELSEWHERE.has(field));
    // A new task needs no fields that are 0: a missing field is read as 0.
    const isLeft = (field: string): boolean =>
      LEFT.has(`${name} ${field}`) || (name === 'create' && rule.set?.[field] === 0);
    const values = [...toValues(rule, given)].filter(([field]) => !isLeft(field));
    const lines = [''];
    for (const put of values.map(([field, value]) => `put(task, '${field}', ${value})`)) {
      if (lines.at(-1)!.length + put.length > MAX_COLUMNS) lines.push('');
      lines.push(`${lines.pop()}; ${put}`);
    }
    const body = lines.map((line) => line.replace('; ', '  '));
    return [`local function put_${name}(${['task', ...given].join(', ')})`, ...body, 'end'].join('\n');
  });
  return ['-- Written by `npm run rules` from rules/transitions.ts.', ...functions, ''].join('\n');
}

function* toValues(rule: Transition, given: readonly string[]): Generator<readonly [string, string]> {
  if (rule.next !== undefined) yield ['status', `STATUS_AFTER.${rule.next}[task.status]`];
  for (const [field, value] of Object.entries(rule.set ?? {})) {
    if (!ELSEWHERE.has(field)) yield [field, toLua(value)];
  }
  for (const [field, by] of Object.entries(rule.plus ?? {})) {
    yield [field, by < 0 ? `math.max(0, task.${field} - ${-by})` : `task.${field} + ${by}`];
  }
  for (const field of given) yield [field, field];
  for (const field of rule.now ?? []) yield [field, 'now'];
  for (const field of rule.first ?? []) yield [field, `task.${field} or now`];
  for (const field of rule.none ?? []) yield [field, 'nil'];
  if (rule.hasPendingOrders === 'held') yield ['hasPendingOrders', "task.stage == 'held' and '1' or nil"];
  if (rule.hasPendingOrders === 'ordered') yield ['hasPendingOrders', "task.orderNumber > 0 and '1' or nil"];
}
