// The transitions of a task as assignments of the Postgres store.
import type { Transition } from '../../packages/tasks/src/ledger/rules/transitions.ts';

export type Transitions = Readonly<Record<string, Transition>>;

/** A rule in a file: transitions, and expressions for their parameters. Existing assignments may be omitted. */
const RULE = /^(?<names>\w+(?: and \w+)*)(?:; (?<given>.+))?$/;

/**
 * Returns columns and their values after the transitions of a rule, such as `release and ready; released = own_claim`. `t` is
 * the row before, `now` the time.
 */
export function toAssignments(rule: string, transitions: Transitions): readonly (readonly [string, string])[] {
  const { names = '', given = '' } = RULE.exec(rule)?.groups ?? {};
  const pairs = given.split(/, (?=\w+ = )/).filter(Boolean);
  const expressions = new Map(pairs.map((pair) => pair.split(/ = (.*)/s) as [string, string]));
  const values = new Map<string, string>();
  for (const name of names.split(' and ')) {
    const transition = transitions[name];
    if (transition === undefined) throw new Error(`-- Rule: ${rule}: there is no transition '${name}'`);
    for (const [field, value] of assign(transition, expressions)) values.set(toColumn(field), value);
    addReadyQueue(values, transition);
  }
  for (const field of expressions.keys()) {
    if (!values.has(toColumn(field))) throw new Error(`-- Rule: ${rule}: it is not given '${field}'`);
  }
  return [...values];
}

function* assign(rule: Transition, expressions: ReadonlyMap<string, string>): Generator<[string, string]> {
  if (rule.next !== undefined) yield ['status', `fn.next_status(t.status, '${rule.next}')`];
  for (const [field, value] of Object.entries(rule.set ?? {})) yield [field, toConstant(value)];
  for (const [field, by] of Object.entries(rule.plus ?? {})) {
    const column = `t.${toColumn(field)}`;
    yield [field, by < 0 ? `greatest(0, ${column} - ${-by})` : `${column} + ${by}`];
  }
  for (const field of rule.given ?? []) if (expressions.has(field)) yield [field, expressions.get(field)!];
  for (const field of rule.now ?? []) yield [field, 'now'];
  for (const field of rule.first ?? []) yield [field, `coalesce(t.${toColumn(field)}, now)`];
  for (const field of rule.none ?? []) yield [field, field === 'hasPendingOrders' ? 'false' : 'NULL'];
  if (rule.hasPendingOrders === 'held') yield ['hasPendingOrders', "coalesce(t.stage = 'held', false)"];
  if (rule.hasPendingOrders === 'ordered') yield ['hasPendingOrders', 't.order_number > 0'];
}

/** A ready task is in the ready queue that follows from its other columns. */
function addReadyQueue(values: Map<string, string>, { set, none }: Transition): void {
  const [status, attempts] = ['status', 'attempts'].map((column) => values.get(column) ?? `t.${column}`);
  if (set?.['stage'] === 'ready')
    values.set('ready_queue', `fn.to_ready_queue(t.agent, ${status}, t.stop_undo, ${attempts})`);
  else if (set?.['stage'] !== undefined || none?.includes('stage')) values.set('ready_queue', 'NULL');
}

function toConstant(value: string | number | readonly []): string {
  if (typeof value === 'string') return `'${value}'`;
  return typeof value === 'number' ? `${value}` : '0';
}

/** Commands are in a separate table: the task has their number. */
function toColumn(field: string): string {
  return field === 'commands' ? 'commands_waiting' : field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
