import type { Question, TaskStore, TaskSummary } from '@whoa/tasks';

/** A question that needs no answer any more, with its answer if it had one. */
interface ClosedQuestion extends Question {
  readonly task: Pick<TaskSummary, 'id' | 'agent' | 'title' | 'startedBy'>;
  readonly closed: NonNullable<Question['closed']>;
}

/** The questions that were closed last, latest first. */
export interface ClosedQuestionPage {
  readonly questions: readonly ClosedQuestion[];
  /** Only tasks that were created since then were read. Left out if that is all of them. */
  readonly since?: number;
}

/** Stores have no index of closed questions. So this many of the newest tasks are looked at … */
const MAX_LISTED = 1_000;
/** … and this many of those that have asked are read, a few at a time. */
const MAX_READ = 200;
const PARALLEL = 10;

/** Lists the questions that were closed last. */
export async function listClosedQuestions(
  store: TaskStore,
  { tenant, limit }: { readonly tenant: string; readonly limit: number },
): Promise<ClosedQuestionPage> {
  const { tasks, next } = await store.list({ tenant, limit: MAX_LISTED });
  const asked = tasks.filter(({ hasAsked }) => hasAsked === true);
  const read = asked.slice(0, MAX_READ);
  const questions: ClosedQuestion[] = [];
  for (let at = 0; at < read.length; at += PARALLEL) {
    const records = await Promise.all(read.slice(at, at + PARALLEL).map(({ id }) => store.get({ tenant, id })));
    for (const record of records) if (record !== undefined) questions.push(...toClosed(record, record.questions));
  }
  const isWhole = next === undefined && asked.length === read.length;
  const last = asked.length > read.length ? read.at(-1) : tasks.at(-1);
  return {
    questions: questions.toSorted((a, b) => b.closed.at - a.closed.at).slice(0, limit),
    ...(!isWhole && last && { since: last.createdAt }),
  };
}

function toClosed(task: TaskSummary, questions: readonly Question[] = []): ClosedQuestion[] {
  const { id, agent, title, startedBy } = task;
  const about = { id, agent, ...(title !== undefined && { title }), ...(startedBy !== undefined && { startedBy }) };
  return questions.flatMap(({ closed, ...question }) =>
    closed === undefined ? [] : [{ ...question, closed, task: about }],
  );
}
