import type { TaskClient } from '@whoa/server/task-client';
import type { TaskRecord } from '@whoa/tasks';
import { type ReactNode, useState } from 'react';
import { describeError, type Me } from '../api/session.ts';
import { formatCount, formatDuration } from '../model/format.ts';
import type { RunModel } from '../model/run-model.ts';
import { describeProviderWait, isLive, shownStatus } from '../model/shown-status.ts';
import type { PageProps } from '../page/page-props.ts';
import { Button, CopyButton, LoadingRows, NoSuch, StateCard, Status, useNow, useTitle } from '../page/parts.tsx';
import { addresses, Link, navigate } from '../page/router.tsx';
import { Timeline } from '../timeline/timeline.tsx';
import { CallTree } from './call-tree.tsx';
import { RunTranscript } from './run-transcript.tsx';
import { SteerBox } from './steer-box.tsx';
import { StopPanel } from './stop-panel.tsx';
import type { FollowedTask } from './task-follower.ts';
import { useTask } from './use-task.ts';

/** One task: what it said and did, and how it stops. */
export function TaskPage(props: PageProps & { readonly id: string }): ReactNode {
  const { me, tenant, id } = props;
  const { client, follower, followed } = useTask(props);
  const { task, run, isMissing, problem } = followed;
  const title = task?.title ?? id;
  useTitle(title);
  const isRunning = task !== undefined && isLive(task);
  const now = useNow(isRunning ? 500 : undefined);
  if (isMissing) return <Missing id={id} />;
  if (task === undefined) {
    return (
      <main id="main">
        {problem === undefined ? (
          <LoadingRows />
        ) : (
          <StateCard status="failed" title="The task cannot be read">
            <p>{problem.message}</p>
          </StateCard>
        )}
      </main>
    );
  }
  // Clocks of pages and workers differ: nothing that was written lies in the future.
  const end = isRunning ? Math.max(now, run.lastAt) : (task.endedAt ?? run.lastAt);
  return (
    <main id="main">
      <Head {...{ task, followed, client, me, tenant, end, title }} />
      <div className="cols">
        <div className="stack">
          {run.startedAt !== undefined && (
            <section className="card" aria-label="Timeline">
              <header>
                <h2>Timeline</h2>
                <span className="sm mute push key">
                  dashed: waiting for approval. Outlined: must not be interrupted. <span className="cut" /> interrupted
                </span>
              </header>
              <Timeline
                run={run}
                label="Timeline"
                context={{ end, isLive: isRunning, ...(task.stop && { ahead: task.stop }) }}
              />
            </section>
          )}
          <RunTranscript {...{ followed, task, client, me, now: end }} />
        </div>
        <aside className="stack" aria-label="Stop and calls">
          <StopPanel {...{ task, run, client, me, now: end, tenant }} onAnswer={() => follower.refresh()} />
          {task.status === 'running' && me.rights.includes('start') && <SteerBox {...{ task, client }} />}
          <CallTree run={run} task={task} />
        </aside>
      </div>
    </main>
  );
}

interface HeadProps {
  readonly task: TaskRecord;
  readonly followed: FollowedTask;
  readonly client: TaskClient;
  readonly me: Me;
  readonly tenant: string | undefined;
  readonly end: number;
  readonly title: string;
}

function Head({ task, followed, client, me, tenant, end, title }: HeadProps): ReactNode {
  const { id } = task;
  const [asked] = followed.run.openQuestions;
  const wait = describeProviderWait(task);
  return (
    <>
      <div className="crumb row mute">
        <Link to={addresses.tasks(tenant === undefined ? '' : `?tenant=${encodeURIComponent(tenant)}`)}>Tasks</Link>/
        <span className="id">{id}</span>
        <CopyButton text={id}>Copy id</CopyButton>
        <span className="row push">
          {me.rights.includes('start') && <StartAgain task={task} client={client} tenant={tenant} />}
          <RawJson task={task} />
        </span>
      </div>
      <div className="stack">
        <div className="row">
          <h1 className="title">{title}</h1>
          <Status status={shownStatus(task)} isPill>
            {task.status === 'cancelling' ? `stopping: ${task.stop?.level ?? 'drain'}` : undefined}
          </Status>
          {asked !== undefined && (
            <a className="btn tiny" href={`#${encodeURIComponent(asked.question.callId)}`}>
              Answer the question
            </a>
          )}
          {task.outcome?.stopReport !== undefined && (
            <Link className="btn tiny" to={addresses.report(id, tenant)}>
              Stop report
            </Link>
          )}
        </div>
        <Facts task={task} run={followed.run} end={end} me={me} />
        <Connection followed={followed} />
        {wait !== undefined && (
          <div className="note" role="status">
            <Status status="init">waiting</Status>
            <span className="wrap">{wait}</span>
          </div>
        )}
        {task.outcome?.error && (
          <div className="note" role="status">
            <Status status="failed" />
            <span className="wrap">{task.outcome.error.message}</span>
          </div>
        )}
      </div>
    </>
  );
}

interface FactsProps extends Pick<HeadProps, 'task' | 'end' | 'me'> {
  readonly run: RunModel;
}

function Facts({ task, run, end, me }: FactsProps): ReactNode {
  const { agent, tenant, conversation, activity, outcome, worker, epoch, createdAt, startedAt } = task;
  const usage = outcome?.usage ?? activity?.usage;
  const other = tenant === me.tenant ? undefined : tenant;
  return (
    <dl className="facts">
      <Fact name="Agent">{agent}</Fact>
      <Fact name="Tenant">{tenant}</Fact>
      {conversation !== undefined && (
        <Fact name="Conversation">
          <Link className="link" to={addresses.conversation(conversation, other)}>
            {conversation}
          </Link>
        </Fact>
      )}
      <Fact name="Took">{formatDuration(end - createdAt)}</Fact>
      {startedAt !== undefined && <Fact name="Waited">{formatDuration(startedAt - createdAt)}</Fact>}
      <Fact name="Turns, calls">
        {activity?.turns ?? run.turns.length}, {activity?.calls ?? run.calls.size}
      </Fact>
      {usage !== undefined && (
        <Fact name="Tokens in, out">
          {formatCount(usage.inputTokens)}, {formatCount(usage.outputTokens)}
          {!usage.isComplete && <span className="mute"> so far</span>}
        </Fact>
      )}
      {worker !== undefined && (
        <Fact name="Worker">
          <span title={worker}>{worker.split('-').slice(0, 2).join('-')}</span>, epoch {epoch}
        </Fact>
      )}
    </dl>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }): ReactNode {
  return (
    <div>
      <dt className="sm mute">{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A lost connection is one quiet line; so is the one that came back. */
export function Connection({ followed }: Pick<HeadProps, 'followed'>): ReactNode {
  const { lostSince, resumed, problem } = followed;
  if (lostSince !== undefined) {
    return (
      <p className="rule" role="status">
        connection lost, trying again; a stop still works as soon as the server answers
      </p>
    );
  }
  if (problem !== undefined) {
    return (
      <p className="rule" role="alert">
        {problem.message}
      </p>
    );
  }
  if (resumed === undefined) return null;
  return (
    <p className="rule" role="status">
      connection lost for {formatDuration(resumed.afterMs)}, went on at entry {resumed.position}: nothing missed,
      nothing twice
    </p>
  );
}

function StartAgain({ task, client, tenant }: Pick<HeadProps, 'task' | 'client' | 'tenant'>): ReactNode {
  const [problem, setProblem] = useState('');
  const start = (): void => {
    const input = task.inputs.at(-1);
    if (input === undefined) return;
    client.create({ agent: task.agent, input }).then(
      (receipt) => {
        if ('task' in receipt) navigate(addresses.task(receipt.task.id, tenant));
        else setProblem(`Not started: ${receipt.result}`);
      },
      (error: unknown) => setProblem(describeError(error).message),
    );
  };
  return (
    <>
      {problem !== '' && (
        <span className="sm red" role="alert">
          {problem}
        </span>
      )}
      {tenant === undefined && (
        <Button look="tiny" onClick={start}>
          Start again
        </Button>
      )}
    </>
  );
}

function RawJson({ task }: Pick<HeadProps, 'task'>): ReactNode {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button look="tiny" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Raw JSON
      </Button>
      {isOpen && <pre className="card out raw">{JSON.stringify(task, undefined, 2)}</pre>}
    </>
  );
}

export function Missing({ id }: { readonly id: string }): ReactNode {
  return (
    <NoSuch what="task">
      <span className="id">{id}</span> does not exist, is no longer kept, or belongs to a tenant that you do not see.
    </NoSuch>
  );
}
