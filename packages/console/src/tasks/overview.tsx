import type { ReactNode } from 'react';
import { formatWhole, plural } from '../model/format.ts';
import type { TaskListState } from './task-list.ts';

/** The queue and the workers. Only operators see workers: they belong to no tenant. */
export function Overview({ state: { counts, workers } }: { readonly state: TaskListState }): ReactNode {
  if (counts === undefined) return null;
  const { init, running, cancelling } = counts.statuses;
  return (
    <section className="card strip" aria-label="Queue and workers">
      <div>
        <b>{formatWhole(init)}</b>
        <span className="soft">queued</span>
      </div>
      <div>
        <b>{formatWhole(running + cancelling)}</b>
        <span>
          <span className="soft">running</span>
          <br />
          <span className="sm mute">{`${cancelling} stopping`}</span>
        </span>
      </div>
      {workers !== undefined && <Workers {...workers} />}
    </section>
  );
}

const MAX_BARS = 20;

function Workers({ workers, hasMore }: NonNullable<TaskListState['workers']>): ReactNode {
  const busy = workers.filter(({ holds }) => holds > 0).length;
  const most = Math.max(1, ...workers.map(({ holds }) => holds));
  const bars = workers.slice(0, MAX_BARS);
  return (
    <div>
      <b>{`${workers.length}${hasMore ? '+' : ''}`}</b>
      <span>
        <span className="soft">
          {workers.length === 1 ? 'worker' : 'workers'}, {busy} busy
        </span>
        <br />
        <span className="sm mute">
          {workers.length === 0
            ? 'Tasks wait until one starts: whoa worker'
            : `running ${plural(
                workers.reduce((sum, { holds }) => sum + holds, 0),
                'task',
              )}`}
        </span>
      </span>
      <svg
        className="push"
        width={bars.length * 10}
        height={28}
        role="img"
        aria-label={`Tasks per worker: ${bars.map(({ holds }) => holds).join(', ') || 'none'}`}
      >
        {bars.map(({ worker, holds }, index) => (
          <g key={worker} fill="currentColor">
            <title>{`${worker}: ${plural(holds, 'task')}`}</title>
            <rect x={index * 10} y={0} width={6} height={28} opacity={0.16} />
            <rect x={index * 10} y={28 - (28 * holds) / most} width={6} height={(28 * holds) / most} opacity={0.7} />
          </g>
        ))}
      </svg>
    </div>
  );
}
