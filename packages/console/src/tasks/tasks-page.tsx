import { type ReactNode, useEffect, useMemo, useState } from 'react';
import { clientFor } from '../api/session.ts';
import { formatClock, formatWhole } from '../model/format.ts';
import { type ShownStatus, STATUS_LABELS } from '../model/shown-status.ts';
import type { PageProps } from '../page/page-props.ts';
import { Button, LoadingRows, StateCard, Status, useLive, useTitle } from '../page/parts.tsx';
import { Filters, StatusCounts } from './filters.tsx';
import { HaltPanel, PausedNotes } from './halt-panel.tsx';
import { Overview } from './overview.tsx';
import { StopByFilter } from './stop-by-filter.tsx';
import { TaskList, type TaskListState } from './task-list.ts';
import { TaskTable } from './task-table.tsx';
import { type AddressFilter, useFilter } from './use-filter.ts';

/** Fewer tasks than this do not fill a window. */
const MIN_SHOWN = 50;

/** The tasks of a tenant, live. */
export function TasksPage({ me, tenant, onLoggedOut }: PageProps): ReactNode {
  useTitle('Tasks');
  const filter = useFilter();
  const { status, agent, conversation } = filter.asked;
  const isOperator = me.rights.includes('operate');
  // Operators see every tenant until they choose one.
  const isAll = isOperator && tenant === undefined;
  const own = useMemo(() => clientFor(me, tenant), [me, tenant]);
  const client = useMemo(() => (isAll ? clientFor(me, '*') : own), [me, isAll, own]);
  const list = useMemo(
    () => new TaskList({ client, filter: { status, agent, conversation }, withWorkers: isOperator, onLoggedOut }),
    [client, status, agent, conversation, isOperator, onLoggedOut],
  );
  const state = useLive(list);
  const [isStopping, setStopping] = useState(false);
  const [isHalting, setHalting] = useState(false);
  const halting = {
    client,
    target: agent !== undefined ? { agent } : tenant !== undefined ? { tenant } : { all: true as const },
    onClose: () => setHalting(false),
    onDone: () => list.refresh(),
  };
  // A stop by filter is about one tenant.
  const isMixed = isAll && state.tasks.some((task) => task.tenant !== me.tenant);
  const shown = state.tasks.filter(filter.matches);
  // What the server cannot filter may leave too little to scroll.
  useEffect(() => {
    if (shown.length < MIN_SHOWN && state.hasMore) list.loadMore();
  }, [list, shown.length, state]);
  const total = state.counts && Object.values(state.counts.statuses).reduce((sum, count) => sum + count, 0);

  return (
    <main id="main">
      <div className="stack">
        <div className="row">
          <h1>Tasks</h1>
          {total !== undefined && (
            <span className="mute">
              {formatWhole(total)} stored{me.tenant !== tenant && tenant !== undefined ? ` in ${tenant}` : ''}
            </span>
          )}
          <Actions
            me={me}
            isMixed={isMixed}
            isStopping={isStopping}
            onStop={() => setStopping(!isStopping)}
            isHalting={isHalting}
            onHalt={() => setHalting(!isHalting)}
          />
        </div>
        {isHalting && <HaltPanel {...halting} key={JSON.stringify(halting.target)} />}
        <PausedNotes client={client} paused={state.paused ?? []} onDone={() => list.refresh()} />
        <Overview state={state} />
        <StatusCounts counts={state.counts} filter={filter} />
        <Filters filter={filter} agents={me.agents ?? []} client={client} isOperator={isOperator} />
        {isStopping && !isMixed && (
          <StopByFilter client={own} filter={filter} onClose={() => setStopping(false)} onDone={() => list.refresh()} />
        )}
        <Problem state={state} onRetry={() => list.refresh()} />
        {state.isLoaded || state.tasks.length > 0 ? (
          <TaskTable
            tasks={shown}
            list={list}
            hasMore={state.hasMore}
            me={me}
            empty={<Nothing filter={filter} total={total ?? 0} />}
          />
        ) : (
          state.problem === undefined && <LoadingRows rows={12} />
        )}
      </div>
    </main>
  );
}

interface ActionsProps {
  readonly me: PageProps['me'];
  readonly isMixed: boolean;
  readonly isStopping: boolean;
  readonly onStop: () => void;
  readonly isHalting: boolean;
  readonly onHalt: () => void;
}

/** What can be done to many tasks. */
function Actions({ me: { rights }, isMixed, isStopping, onStop, isHalting, onHalt }: ActionsProps): ReactNode {
  const mayHalt = rights.includes('operate') && rights.includes('halt');
  return (
    <>
      {rights.includes('cancel') && (
        <Button
          look="so push"
          aria-expanded={isStopping}
          disabled={isMixed}
          title={isMixed ? 'Choose a tenant first' : undefined}
          onClick={onStop}
        >
          Stop by filter…
        </Button>
      )}
      {mayHalt && (
        <Button look="so" aria-expanded={isHalting} onClick={onHalt}>
          Halt…
        </Button>
      )}
    </>
  );
}

function Problem({ state, onRetry }: { readonly state: TaskListState; readonly onRetry: () => void }): ReactNode {
  const { problem, isLoaded } = state;
  if (problem === undefined) return null;
  return (
    <div className="note" role="alert">
      <Status status={isLoaded ? 'running' : 'failed'}>
        <b>{isLoaded ? 'Reconnecting' : 'The tasks cannot be read'}</b>
      </Status>
      <span className="soft">
        {problem.message} <code>{problem.code}</code>.{' '}
        {isLoaded ? `The list is as it was at ${formatClock(problem.since)}.` : 'Nothing was changed.'}
      </span>
      <Button look="tiny push" onClick={onRetry}>
        Try now
      </Button>
    </div>
  );
}

function Nothing({ filter, total }: { readonly filter: AddressFilter; readonly total: number }): ReactNode {
  const names = Object.entries(filter.values).filter(([name]) => name !== 'tenant');
  if (names.length === 0 || total === 0) {
    return (
      <StateCard status="init" title="No task yet">
        <p>Start one in a terminal. It appears here at once, and can be stopped from here.</p>
        <code className="cmd">whoa run "Do the tests pass?"</code>
      </StateCard>
    );
  }
  return (
    <StateCard
      status="cancelled"
      title="Nothing matches"
      actions={
        <>
          {filter.values.status !== undefined && (
            <Button onClick={() => filter.set('status', undefined)}>Remove status</Button>
          )}
          <Button look="quiet" onClick={filter.clear}>
            Remove all filters
          </Button>
        </>
      }
    >
      <p>
        No task of {formatWhole(total)} has{' '}
        {names.map(([name, value], index) => (
          <span key={name}>
            {index > 0 && ' and '}
            {name === 'q' ? 'the words' : name}{' '}
            <b>{name === 'status' ? (STATUS_LABELS[value as ShownStatus] ?? value) : value}</b>
          </span>
        ))}
        .
      </p>
    </StateCard>
  );
}
