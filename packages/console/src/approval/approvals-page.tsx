import type { TaskSummary } from '@whoa/tasks';
import { type ReactNode, useMemo } from 'react';
import { clientFor } from '../api/session.ts';
import { plural } from '../model/format.ts';
import { isLive, shownStatus } from '../model/shown-status.ts';
import type { PageProps } from '../page/page-props.ts';
import { LoadingRows, StateCard, Status, useLive, useNow, useTitle } from '../page/parts.tsx';
import { addresses, Link } from '../page/router.tsx';
import { StopButton } from '../task/stop-button.tsx';
import { useTask } from '../task/use-task.ts';
import { TaskList } from '../tasks/task-list.ts';
import { ClosedQuestions } from './closed-questions.tsx';
import { QuestionCard } from './question-card.tsx';

const RUNNING = { status: 'running' } as const;
/** Each one shown is followed, so only this many are. */
const MAX_SHOWN = 10;

/** Everything that waits for a person, the longest first. */
export function ApprovalsPage(props: PageProps): ReactNode {
  useTitle('Approvals');
  const { me, tenant, onLoggedOut } = props;
  const client = useMemo(() => clientFor(me, tenant), [me, tenant]);
  const list = useMemo(() => new TaskList({ client, filter: RUNNING, onLoggedOut }), [client, onLoggedOut]);
  const { tasks, isLoaded, problem } = useLive(list);
  const waiting = tasks.filter((task) => shownStatus(task) === 'waiting').toReversed();
  return (
    <main id="main">
      <div className="stack">
        <div className="row">
          <h1>Approvals</h1>
          {isLoaded && <span className="mute">{plural(waiting.length, 'task')} waiting for an answer</span>}
        </div>
        {!isLoaded && problem === undefined && <LoadingRows />}
        {problem !== undefined && (
          <p className="rule" role="alert">
            {problem.message}
          </p>
        )}
        {isLoaded && waiting.length === 0 && (
          <StateCard status="success" title="Nobody is waited for">
            <p>
              When an agent wants to do something that needs an answer, it appears here and on the page of its task.
            </p>
          </StateCard>
        )}
        {waiting.slice(0, MAX_SHOWN).map((task) => (
          <WaitingTask key={task.id} {...props} head={task} id={task.id} />
        ))}
        {waiting.length > MAX_SHOWN && <p className="rule">{waiting.length - MAX_SHOWN} more wait behind these</p>}
        <ClosedQuestions client={client} onLoggedOut={onLoggedOut} {...(tenant !== undefined && { tenant })} />
      </div>
    </main>
  );
}

function WaitingTask({ head, ...props }: PageProps & { readonly head: TaskSummary; readonly id: string }): ReactNode {
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
            <b>{head.title ?? id}</b>
          </Link>
        </Status>
        <span className="soft">{head.agent}</span>
        <span className="push">{me.rights.includes('cancel') && <StopButton task={task} client={client} />}</span>
      </header>
      {run.openQuestions.map((asked) => (
        <QuestionCard key={asked.id} {...{ asked, task, client, me, now }} />
      ))}
    </article>
  );
}
