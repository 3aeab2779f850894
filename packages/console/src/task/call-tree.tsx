import type { TaskRecord } from '@whoa/tasks';
import type { ReactNode } from 'react';
import { plural } from '../model/format.ts';
import type { RunModel } from '../model/run-model.ts';
import { type ShownStatus, STATUS_LABELS, shownCallStatus, shownStatus } from '../model/shown-status.ts';
import { Status } from '../page/parts.tsx';

/** Only the last calls of a long run are listed. */
const MAX_LISTED = 60;

/** The agent, its sub-agents and their calls. Each is a link to its place on the page. */
export function CallTree({ run, task }: { readonly run: RunModel; readonly task: TaskRecord }): ReactNode {
  if (run.calls.size === 0) return null;
  return (
    <section className="card">
      <header>
        <h2>Agents and calls</h2>
      </header>
      <ul className="tree pad">
        <li>
          <Leaf href="#main" status={shownStatus(task)} name={task.agent} />
          <Calls run={run} />
        </li>
      </ul>
    </section>
  );
}

function Calls({ run }: { readonly run: RunModel }): ReactNode {
  const all = run.callList;
  const shown = all.slice(-MAX_LISTED);
  return (
    <ul>
      {all.length > shown.length && <li className="sm mute">{plural(all.length - shown.length, 'earlier call')}</li>}
      {shown.map((call) => (
        <li key={call.id}>
          <Leaf href={`#${encodeURIComponent(call.id)}`} status={shownCallStatus(call)} name={call.tool} />
          {call.nested !== undefined && call.nested.calls.size > 0 && <Calls run={call.nested} />}
        </li>
      ))}
    </ul>
  );
}

interface LeafProps {
  readonly href: string;
  readonly status: ShownStatus;
  readonly name: string;
}

function Leaf({ href, status, name }: LeafProps): ReactNode {
  return (
    <a href={href}>
      <Status status={status}>
        <b>{name}</b>
      </Status>
      <span className="push sm mute">{STATUS_LABELS[status]}</span>
    </a>
  );
}
