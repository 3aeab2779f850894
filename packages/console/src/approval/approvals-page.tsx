import { type ReactNode, useCallback, useMemo } from 'react';
import { clientFor } from '../api/session.ts';
import { plural } from '../model/format.ts';
import { isLive } from '../model/shown-status.ts';
import type { PageProps } from '../page/page-props.ts';
import { LoadingRows, StateCard, Status, useNow, usePolled, useTitle } from '../page/parts.tsx';
import { addresses, Link } from '../page/router.tsx';
import { StopButton } from '../task/stop-button.tsx';
import { useTask } from '../task/use-task.ts';
import { ClosedQuestions } from './closed-questions.tsx';
import { QuestionCard } from './question-card.tsx';

/** Each one shown is followed, so only this many are. */
const MAX_SHOWN = 10;
const MAX_READ = 200;
const READ_MS = 1_000;

/** Everything that waits for a person, the longest first. */
export function ApprovalsPage(props: PageProps): ReactNode {
  useTitle('Approvals');
  const { me, tenant, onLoggedOut } = props;
  const client = useMemo(() => clientFor(me, tenant), [me, tenant]);
  const read = useCallback(() => client.questions({ limit: MAX_READ }), [client]);
  const { state: page, problem } = usePolled(read, { intervalMs: READ_MS, onLoggedOut });
  // The id of a question starts with that of its task.
  const ids = [...new Set(page?.questions.map(({ id }) => id.split('.', 1)[0]!))];
  const hidden = ids.length - MAX_SHOWN;
  return (
    <main id="main">
      <div className="stack">
        <div className="row">
          <h1>Approvals</h1>
          {page !== undefined && (
            <span className="mute">
              {page.next !== undefined && 'at least '}
              {plural(ids.length, 'task')} waiting for an answer
            </span>
          )}
        </div>
        {page === undefined && problem === undefined && <LoadingRows />}
        {problem !== undefined && (
          <p className="rule" role="alert">
            {problem}
          </p>
        )}
        {page !== undefined && ids.length === 0 && (
          <StateCard status="success" title="Nobody is waited for">
            <p>
              When an agent wants to do something that needs an answer, it appears here and on the page of its task.
            </p>
          </StateCard>
        )}
        {ids.slice(0, MAX_SHOWN).map((id) => (
          <WaitingTask key={id} {...props} id={id} />
        ))}
        {hidden > 0 && <p className="rule">{hidden} more wait behind these</p>}
        <ClosedQuestions client={client} onLoggedOut={onLoggedOut} {...(tenant !== undefined && { tenant })} />
      </div>
    </main>
  );
}

function WaitingTask(props: PageProps & { readonly id: string }): ReactNode {
  const { me, tenant, id } = props;
  const { client, followed } = useTask(props);
  const now = useNow(1_000);
  const { task, run } = followed;
  if (task === undefined || !isLive(task)) return null;
  return (
    <article className="card asking">
      <header>
        <Status status="waiting">
          <Link to={addresses.task(id, tenant)}>
            <b>{task.title ?? id}</b>
          </Link>
        </Status>
        <span className="soft">{task.agent}</span>
        <span className="push">{me.rights.includes('cancel') && <StopButton task={task} client={client} />}</span>
      </header>
      {run.openQuestions.map((asked) => (
        <QuestionCard key={asked.id} {...{ asked, task, client, me, now }} />
      ))}
    </article>
  );
}
