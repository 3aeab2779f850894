import { expect, test } from 'vitest';
import { RULE_FILES } from './rule-files.ts';

const STATEMENTS = Object.values(RULE_FILES).flatMap((source) => source.split(';'));

/** Statements that find a task by its id, with their WHERE clauses. */
const BY_ID = STATEMENTS.flatMap((statement) => {
  const [, alias] = /\bwhoa\.tasks (?:AS )?(\w+)/.exec(statement) ?? [];
  const condition = statement.slice(statement.lastIndexOf('WHERE'));
  const isById =
    alias !== undefined &&
    (condition.includes(`${alias}.id = `) || /JOIN whoa\.tasks \w+ USING \(id\)/.test(statement));
  return isById ? [{ alias, condition }] : [];
});

test('some statements find a task by its id', () => expect(BY_ID.length).toBeGreaterThan(40));

test.each(BY_ID)('only the index of ids serves %j', ({ alias, condition }) => {
  const others = new RegExp(
    String.raw`\b${alias}\.(stage|tenant|ready_queue|conversation) = |\b${alias}\.has_pending_orders\b(?! IS)`,
  );
  expect(condition).not.toMatch(others);
});

// A full queue of notifications fails the transaction, and every commit waits for the flush of one that notifies.
test('only a function that writes nothing notifies', () => {
  const functions = Object.values(RULE_FILES).flatMap((source) => source.split('CREATE FUNCTION '));
  const notifying = functions.filter((one) => /pg_notify|\bNOTIFY\b/.test(one.replaceAll(/--.*/g, '')));
  expect(notifying.map((one) => one.slice(0, one.indexOf('(')))).toEqual(['fn.notify_all']);
  expect(notifying.join('')).not.toMatch(/INSERT|UPDATE|DELETE/);
});
