import type { TaskClient } from '@whoa/server/task-client';
import { type ReactNode, useCallback } from 'react';
import { formatDuration } from '../model/format.ts';
import { useNow, usePolled } from '../page/parts.tsx';
import { addresses, Link } from '../page/router.tsx';
import { describeAnswer, QUESTION_ENDS } from './question-times.ts';

type ClosedQuestionPage = Awaited<ReturnType<TaskClient['closedQuestions']>>;

/** Reading them takes some reads of the store. */
const READ_MS = 5_000;

interface ClosedQuestionsProps {
  readonly client: TaskClient;
  readonly tenant?: string;
  readonly onLoggedOut: () => void;
}

/** What happened to questions that no longer wait: who answered what, when, and how they closed. */
export function ClosedQuestions({ client, tenant, onLoggedOut }: ClosedQuestionsProps): ReactNode {
  const now = useNow(10_000);
  const read = useCallback(() => client.closedQuestions(), [client]);
  const { state: page, problem } = usePolled(read, { intervalMs: READ_MS, onLoggedOut });
  if (problem !== undefined) return <p className="rule">{problem}</p>;
  if (page === undefined || page.questions.length === 0) return null;
  return (
    <section className="card" aria-label="Closed questions">
      <header>
        <b>Recently closed</b>
        {page.since !== undefined && (
          <span className="soft">of tasks that are at most {formatDuration(now - page.since)} old</span>
        )}
      </header>
      <ol className="plain">
        {page.questions.map((question) => (
          <ClosedRow key={question.id} {...{ question, now, tenant }} />
        ))}
      </ol>
    </section>
  );
}

interface RowProps {
  readonly question: ClosedQuestionPage['questions'][number];
  readonly now: number;
  readonly tenant: string | undefined;
}

function ClosedRow({ question, now, tenant }: RowProps): ReactNode {
  const { task, answer, closed, askedAt } = question;
  const at = answer?.at ?? closed.at;
  return (
    <li className="foot">
      <Link to={addresses.task(task.id, tenant)}>
        <b>{task.title ?? task.id}</b>
      </Link>
      <span>{task.agent}</span>
      {answer !== undefined && (
        <span className="ink">
          {answer.by ?? 'someone'} said {describeAnswer(answer)}
        </span>
      )}
      <span>
        <b className="ink">{closed.why}</b>: {QUESTION_ENDS[closed.why]}
      </span>
      <span className="push">
        after {formatDuration(at - askedAt)}, {formatDuration(now - at)} ago
      </span>
    </li>
  );
}
