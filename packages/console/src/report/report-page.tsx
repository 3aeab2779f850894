import { formatStopReport, type StopReport } from '@whoa/core';
import type { ComponentProps, ReactNode } from 'react';
import { formatClock, formatDuration, plural } from '../model/format.ts';
import type { RunModel } from '../model/run-model.ts';
import { isLive, type ShownStatus, STATUS_LABELS, shownStatus } from '../model/shown-status.ts';
import type { PageProps } from '../page/page-props.ts';
import { CopyButton, LoadingRows, StateCard, Status, useTitle } from '../page/parts.tsx';
import { addresses, Link } from '../page/router.tsx';
import { FateOf } from '../task/fate.tsx';
import { Missing } from '../task/task-page.tsx';
import { useTask } from '../task/use-task.ts';
import { Timeline } from '../timeline/timeline.tsx';
import { describeStop, toGroups } from './report-text.ts';

/** The stop report of a task, as people read it. */
export function ReportPage(props: PageProps & { readonly id: string }): ReactNode {
  useTitle('Stop report');
  const { id, tenant } = props;
  const { client, followed } = useTask(props);
  const { task, run, isMissing } = followed;
  if (isMissing) return <Missing id={id} />;
  if (task === undefined) {
    return (
      <main id="main">
        <LoadingRows />
      </main>
    );
  }
  const report = task.outcome?.stopReport as unknown as StopReport | undefined;
  return (
    <main id="main">
      <div className="crumb row mute">
        <Link to={addresses.tasks()}>Tasks</Link>/
        <Link className="id" to={addresses.task(id, tenant)}>
          {id}
        </Link>
        /<span>Stop report</span>
        <span className="row push">
          <CopyButton text={location.href}>Copy link</CopyButton>
        </span>
      </div>
      {report === undefined ? (
        <NoReport {...{ task, client, tenant }} />
      ) : (
        <Report
          report={report}
          run={run}
          end={task.endedAt ?? run.lastAt}
          undo={task.stop?.undo === true}
          to={addresses.task(id, tenant)}
        />
      )}
    </main>
  );
}

function NoReport(props: ComponentProps<typeof FateOf>): ReactNode {
  const { task, tenant } = props;
  const [title, words] = isLive(task)
    ? ['It has not stopped yet', 'The report is written when everything has settled.']
    : task.startedAt === undefined
      ? ['It never began', <FateOf key="fate" {...props} />]
      : ['There is no stop report', `It ended: ${STATUS_LABELS[task.status]}.`];
  const open = (
    <Link className="btn" to={addresses.task(task.id, tenant)}>
      Open the task
    </Link>
  );
  return (
    <StateCard status={isLive(task) ? 'running' : shownStatus(task)} title={title as string} actions={open}>
      <p>{words}</p>
    </StateCard>
  );
}

interface ReportProps {
  readonly report: StopReport;
  readonly run: RunModel;
  readonly end: number;
  readonly undo: boolean;
  /** The address of the task. */
  readonly to: string;
}

function Report({ report, run, end, undo, to }: ReportProps): ReactNode {
  const { reason } = report;
  const text = formatStopReport(report);
  const who = [
    reason.by === undefined ? reason.kind : `by ${reason.by}`,
    reason.via !== undefined && `via ${reason.via}`,
    reason.message !== undefined && `“${reason.message}”`,
    undo && 'with undo',
    formatClock(reason.at),
  ].filter(Boolean);
  return (
    <div className="stack">
      <h1 className="sentence">{describeStop(report)}</h1>
      <p className="row">
        <Status status="cancelled" />
        <span className="soft wrap">{who.join(', ')}</span>
      </p>
      {run.startedAt !== undefined && run.levels.length > 0 && (
        <section className="card" aria-label="Timeline of the stop">
          <Timeline run={run} label="Timeline of the stop" context={{ end, isLive: false }} />
        </section>
      )}
      <ReportGroups report={report} to={to} />
      <section className="card">
        <header>
          <h2>As text</h2>
          <span className="push">
            <CopyButton text={text}>Copy</CopyButton>
          </span>
        </header>
        <pre className="out" tabIndex={0}>
          {text}
        </pre>
      </section>
    </div>
  );
}

/** The calls of a report, by how each ended. */
export function ReportGroups({ report, to }: Pick<ReportProps, 'report' | 'to'>): ReactNode {
  return (
    <div className="groups">
      {toGroups(report).map((group) => (
        <Group key={group.title} {...group} to={to} />
      ))}
    </div>
  );
}

interface GroupProps {
  readonly status: ShownStatus;
  readonly title: string;
  readonly items: ReturnType<typeof toGroups>[number]['items'];
  readonly to: string;
}

const MAX_ITEMS = 100;

function Group({ status, title, items, to }: GroupProps): ReactNode {
  return (
    <section className="card grp">
      <header>
        <h2>
          <Status status={status}>{title}</Status>
        </h2>
        <span className="mute">{items.length}</span>
      </header>
      <ul>
        {items.slice(0, MAX_ITEMS).map(({ key, name, afterMs, words, callId }) => (
          <li key={key}>
            <b>{name}</b>
            <span className="push sm mute">
              {afterMs === undefined ? '' : `${afterMs < 0 ? '−' : '+'}${formatDuration(Math.abs(afterMs))}`}
            </span>
            <p>
              {words}{' '}
              {callId !== undefined && (
                <Link className="link" to={`${to}#${encodeURIComponent(callId)}`}>
                  See the call
                </Link>
              )}
            </p>
          </li>
        ))}
        {items.length > MAX_ITEMS && <li>{plural(items.length - MAX_ITEMS, 'more call')}</li>}
      </ul>
    </section>
  );
}
