import { expect, test } from 'vitest';
import { RULE_FILES } from './rule-files.ts';

const STATEMENTS = Object.values(RULE_FILES).flatMap((source) => source.replaceAll(/--.*/g, '').split(';'));

/** Conditions of statements that find a task by its id. */
const BY_ID = STATEMENTS.flatMap((statement) => {
  const [, alias] = /\bwhoa\.tasks (?:AS )?(\w+)/.exec(statement) ?? [];
  if (alias === undefined) return [];
  const isJoined = /JOIN whoa\.tasks \w+ USING \(id\)/.test(statement);
  const conditions = statement.split(/\bWHERE\b/).slice(1);
  return conditions.flatMap((condition) =>
    isJoined || condition.includes(`${alias}.id = `) ? [{ alias, condition }] : [],
  );
});

/** A comparison inside `(…) IS NOT DISTINCT FROM` proves no condition of an index. */
const NULL_SAFE = /\((?:[^()]|\([^()]*\))*\) IS NOT DISTINCT FROM/g;

/** Every column that an index of tasks begins with or has in its condition, but those that only name a time. */
const COLUMNS = 'stage|status|tenant|ready_queue|conversation|agent';

const findOtherIndex = ({ alias, condition }: (typeof BY_ID)[number]): string | undefined => {
  const others = new RegExp(String.raw`\b${alias}\.(${COLUMNS}) (=|IN\b)|\b${alias}\.has_pending_orders\b(?! IS)`);
  return others.exec(condition.replaceAll(NULL_SAFE, ''))?.[0];
};

test('some statements find a task by its id', () => expect(BY_ID.length).toBeGreaterThan(40));

test.each(BY_ID)('only the index of ids serves %j', (statement) => expect(findOtherIndex(statement)).toBeUndefined());

// A plan of an empty store read all running tasks for each finish.
test.each([
  ["t.id = a.id AND t.status IN ('running', 'cancelling')", 't.status IN'],
  ["t.id = message AND t.status = 'init'", 't.status ='],
  ["t.id = a.id AND (t.status IN ('running', 'cancelling')) IS NOT DISTINCT FROM true", undefined],
])('a condition that another index serves is found: %s', (condition, found) => {
  expect(findOtherIndex({ alias: 't', condition })).toBe(found);
});

// A full queue of notifications fails the transaction, and every commit waits for the flush of one that notifies.
test('only a function that writes nothing notifies', () => {
  const functions = Object.values(RULE_FILES).flatMap((source) => source.split('CREATE FUNCTION '));
  const notifying = functions.filter((one) => /pg_notify|\bNOTIFY\b/.test(one.replaceAll(/--.*/g, '')));
  expect(notifying.map((one) => one.slice(0, one.indexOf('(')))).toEqual(['fn.notify_all']);
  expect(notifying.join('')).not.toMatch(/INSERT|UPDATE|DELETE/);
});
