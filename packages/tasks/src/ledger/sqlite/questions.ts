import type { Queries, StoredQuestion, StoredTask, Tables } from '../operations/tables.ts';
import { type Database, parseRecord } from './database.ts';

const SAVE = `
INSERT OR REPLACE INTO questions (task, id, tenant, state, askedAt, expiresAt, record) VALUES (?, ?, ?, ?, ?, ?, ?)
`;
const FIRST_EXPIRED = `
SELECT task AS id, expiresAt AS at FROM questions WHERE state = 'open' AND expiresAt <= ? ORDER BY expiresAt, task LIMIT 1
`;
const FIRST_OVERDUE_PARKED = `
SELECT id, deadline AS at FROM tasks WHERE stage = 'parked' AND deadline <= ? ORDER BY deadline, id LIMIT 1
`;
const OPEN = `
SELECT record FROM questions AS q WHERE tenant = ? AND state = 'open' AND (askedAt, id) > (?, ?)
  AND (expiresAt IS NULL OR expiresAt > ?) AND NOT EXISTS (
    SELECT 1 FROM tasks WHERE tasks.id = q.task AND deadline <= ? AND (status = 'init' OR stage = 'parked')
  ) ORDER BY askedAt, id LIMIT ?
`;

const FIGURES = `
SELECT count(*) AS open, min(askedAt) AS oldest, count(DISTINCT task) AS tasks, count(DISTINCT parked) AS parked FROM (
  SELECT q.askedAt, q.task, CASE WHEN t.stage = 'parked' THEN q.task END AS parked
  FROM questions AS q INDEXED BY questions_open LEFT JOIN tasks AS t ON t.id = q.task WHERE q.state = 'open' LIMIT ?
)
`;

type Questions = Pick<Tables, 'question' | 'saveQuestion' | 'liveQuestions' | 'allQuestions' | 'firstExpired'>;

/** What tasks ask, in a database. */
export function questionTables(
  database: Database,
  findTask: (id: string) => StoredTask | undefined,
): Questions & Pick<Queries, 'openQuestions' | 'questionFigures'> {
  const found = (sql: string, values: readonly (string | number)[]): StoredQuestion[] =>
    database.all(sql, values).map((row) => parseRecord<StoredQuestion>(row)!);
  return {
    question: (task, id) => found('SELECT record FROM questions WHERE task = ? AND id = ?', [task, id])[0],
    saveQuestion(question) {
      const { task, id, tenant, state, askedAt, expiresAt = null } = question;
      database.run(SAVE, [task, id, tenant, state, askedAt, expiresAt, JSON.stringify(question)]);
    },
    liveQuestions: (task) =>
      found("SELECT record FROM questions WHERE task = ? AND state <> 'closed' ORDER BY askedAt, id", [task]),
    allQuestions: (task) => found('SELECT record FROM questions WHERE task = ? ORDER BY askedAt, id', [task]),
    openQuestions: ({ tenant, after, limit, now }) =>
      found(OPEN, [tenant, after?.askedAt ?? -1, after?.id ?? '', now, now, limit]),
    questionFigures(limit) {
      const { open, oldest, tasks, parked } = database.get(FIGURES, [limit])!;
      const figures = { openQuestions: Number(open), asking: Number(tasks) - Number(parked), parked: Number(parked) };
      return { ...figures, ...(oldest !== null && { oldestQuestionAt: Number(oldest) }) };
    },
    firstExpired(now) {
      const due = [FIRST_EXPIRED, FIRST_OVERDUE_PARKED].flatMap((sql) => database.get(sql, [now]) ?? []);
      const [first] = (due as { id: string; at: number }[]).toSorted((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
      return first && findTask(first.id);
    },
  };
}
