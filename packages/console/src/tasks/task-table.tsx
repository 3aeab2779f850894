import type { TaskSummary } from '@whoa/tasks';
import { memo, type ReactNode, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { clientFor, type Me } from '../api/session.ts';
import { formatCount, formatDuration } from '../model/format.ts';
import { describeProviderWait, shownStatus } from '../model/shown-status.ts';
import { Status, useNow } from '../page/parts.tsx';
import { addresses, Link } from '../page/router.tsx';
import { StopButton } from '../task/stop-button.tsx';
import type { TaskList } from './task-list.ts';

const ROW = 37;
const CARD = 93;
const PHONE = '(max-width:720px)';
/** Rows outside the window that are drawn as well. */
const OVERSCAN = 6;
/** Stands for a number that no one counts: loops of applications report only their tokens. */
const UNKNOWN = '–';

interface TaskTableProps {
  readonly tasks: readonly TaskSummary[];
  readonly list: TaskList;
  readonly hasMore: boolean;
  readonly me: Me;
  readonly empty: ReactNode;
}

/** The list. Only the rows in the window are drawn, so its length does not matter. */
export function TaskTable({ tasks, list, hasMore, me, empty }: TaskTableProps): ReactNode {
  const body = useRef<HTMLTableSectionElement>(null);
  const height = useSyncExternalStore(watchPhone, () => (matchMedia(PHONE).matches ? CARD : ROW));
  const { first, last } = useWindow(body, { count: tasks.length, height });
  const now = useNow(1_000);
  useEffect(() => {
    list.showRow(first);
    if (hasMore && last >= tasks.length - OVERSCAN) list.loadMore();
  }, [list, first, last, hasMore, tasks.length]);
  if (tasks.length === 0 && !hasMore) return empty;
  return (
    <section className="card">
      <table aria-rowcount={tasks.length + 1}>
        <thead>
          <tr>
            <th className="w1">Status</th>
            <th>Task</th>
            <th className="w2">Id</th>
            <th className="w2">Agent</th>
            <th className="w3">Tenant</th>
            <th className="num w2">Took</th>
            <th className="num w4">Turns</th>
            <th className="num w4">Calls</th>
            <th className="num w3">Tokens</th>
            <th className="w5">
              <span className="vh">Act</span>
            </th>
          </tr>
        </thead>
        <tbody ref={body}>
          <Spacer height={first * height} />
          {tasks.slice(first, last).map((task, index) => (
            <Row key={task.id} {...{ task, me }} row={first + index + 2} now={ageNow(task, now)} />
          ))}
          <Spacer height={(tasks.length - last) * height} />
        </tbody>
      </table>
      <p className="foot flat" role="status">
        {hasMore ? 'Older tasks are loaded as you scroll.' : 'No older tasks.'}
      </p>
    </section>
  );
}

/** Stands for the rows outside the window. */
function Spacer({ height }: { readonly height: number }): ReactNode {
  return <tr className="spacer" hidden={height <= 0} style={{ height }} />;
}

interface RowProps {
  readonly task: TaskSummary;
  readonly row: number;
  readonly now: number;
  readonly me: Me;
}

const Row = memo(function Row({ task, row, now, me }: RowProps): ReactNode {
  const { id, title, agent, activity, outcome } = task;
  const tenant = task.tenant === me.tenant ? undefined : task.tenant;
  const usage = outcome?.usage ?? activity?.usage;
  const tokens = usage === undefined ? undefined : usage.inputTokens + usage.outputTokens;
  return (
    <tr aria-rowindex={row}>
      <td>
        <TaskStatusCell task={task} />
      </td>
      <td>
        <Link to={addresses.task(id, tenant)}>{title ?? <span className="mute">no title</span>}</Link>
      </td>
      <td title={id}>{id.slice(0, 10)}</td>
      <td>{agent}</td>
      <td>{task.tenant}</td>
      <td>{formatDuration(now - task.createdAt)}</td>
      <td>{activity?.turns ?? UNKNOWN}</td>
      <td>{activity?.calls ?? UNKNOWN}</td>
      <td>{tokens === undefined ? UNKNOWN : formatCount(tokens)}</td>
      <td>
        <RowActions {...{ task, me, tenant }} />
      </td>
    </tr>
  );
});

function TaskStatusCell({ task }: { readonly task: TaskSummary }): ReactNode {
  const status = shownStatus(task);
  const { stop } = task;
  const wait = describeProviderWait(task);
  if (wait !== undefined) {
    return (
      <span title={wait}>
        <Status status="init">waiting for the provider</Status>
      </span>
    );
  }
  if (status !== 'cancelling' || stop === undefined) return <Status status={status} />;
  const reached = ['drain', 'abort', 'kill'].indexOf(stop.level);
  return (
    <Status status="cancelling">
      stopping{' '}
      <span className="lv" aria-hidden="true">
        {[0, 1, 2].map((level) => (
          <b key={level} className={level <= reached ? 'on' : ''} />
        ))}
      </span>
      {stop.level}
    </Status>
  );
}

interface RowActionsProps extends Pick<RowProps, 'task' | 'me'> {
  readonly tenant: string | undefined;
}

function RowActions({ task, me, tenant }: RowActionsProps): ReactNode {
  const { id, status, startedAt, steered } = task;
  const client = useMemo(() => clientFor(me, tenant), [me, tenant]);
  if (status === 'cancelled' && startedAt === undefined) {
    if (shownStatus(task) !== 'steered' || steered === undefined) return null;
    return (
      <Link className="btn tiny quiet" to={addresses.task(steered, tenant)}>
        Run
      </Link>
    );
  }
  if (status === 'cancelled') {
    return (
      <Link className="btn tiny quiet" to={addresses.report(id, tenant)}>
        Report
      </Link>
    );
  }
  if (status === 'failed') {
    return (
      <Link className="btn tiny quiet" to={addresses.task(id, tenant)}>
        Error
      </Link>
    );
  }
  if (status === 'success' || !me.rights.includes('cancel')) return null;
  return (
    <>
      {shownStatus(task) === 'waiting' && (
        <Link className="btn tiny" to={addresses.task(id, tenant)}>
          Review
        </Link>
      )}
      <StopButton task={task} client={client} />
    </>
  );
}

/** The age of an ended task no longer changes: its row is not drawn again. */
function ageNow({ endedAt }: TaskSummary, now: number): number {
  return endedAt ?? now;
}

/** The rows that are in the window, and some around them. */
function useWindow(
  body: { readonly current: HTMLElement | null },
  { count, height }: { readonly count: number; readonly height: number },
): { readonly first: number; readonly last: number } {
  const [view, setView] = useState({ top: 0, rows: 40 });
  useEffect(() => {
    let frame = 0;
    /** Where the rows begin on the page. Measured apart from scrolling, because it makes the browser lay the page out. */
    let start = 0;
    const update = (): void => {
      frame = 0;
      const top = Math.max(0, Math.floor((scrollY - start) / height));
      const rows = Math.ceil(innerHeight / height);
      setView((known) => (known.top === top && known.rows === rows ? known : { top, rows }));
    };
    const scheduleUpdate = (): void => {
      frame ||= requestAnimationFrame(update);
    };
    const measure = (): void => {
      if (body.current !== null) start = body.current.getBoundingClientRect().top + scrollY;
      scheduleUpdate();
    };
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    addEventListener('scroll', scheduleUpdate, { passive: true });
    return () => {
      cancelAnimationFrame(frame);
      observer.disconnect();
      removeEventListener('scroll', scheduleUpdate);
    };
  }, [body, height]);
  const first = Math.max(0, Math.min(view.top, count) - OVERSCAN);
  return { first, last: Math.min(count, view.top + view.rows + OVERSCAN) };
}

function watchPhone(listener: () => void): () => void {
  const query = matchMedia(PHONE);
  query.addEventListener('change', listener);
  return () => query.removeEventListener('change', listener);
}
