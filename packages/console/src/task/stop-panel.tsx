import type { StopLevel } from '@whoa/core';
import type { TaskClient } from '@whoa/server/task-client';
import type { TaskRecord } from '@whoa/tasks';
import { type ReactNode, useState } from 'react';
import type { Me } from '../api/session.ts';
import { formatDuration, joinWords } from '../model/format.ts';
import type { RunModel } from '../model/run-model.ts';
import { isLive } from '../model/shown-status.ts';
import { Status } from '../page/parts.tsx';
import { addresses, Link } from '../page/router.tsx';
import { type StopAnswer, useStop } from './stop-button.tsx';
import { MODES, type StopModeName } from './stop-mode.tsx';

interface StopPanelProps {
  readonly task: TaskRecord;
  readonly run: RunModel;
  readonly client: TaskClient;
  readonly me: Me;
  readonly now: number;
  readonly tenant: string | undefined;
  readonly onAnswer: () => void;
}

const LEVELS: readonly StopLevel[] = ['drain', 'abort', 'kill'];
/** The level at which each mode begins. */
const BEGINS: Readonly<Record<StopModeName, number>> = { graceful: 0, now: 1, kill: 2 };

/** Stops the task, and says how far a stop is. A stop only gets harder, and its first reason stays. */
export function StopPanel({ task, run, client, me, now, tenant, onAnswer }: StopPanelProps): ReactNode {
  const [answer, stop] = useStop(client, { id: task.id, onAnswer });
  const [wanted, setMode] = useState<StopModeName>();
  const [reason, setReason] = useState('');
  const [undo, setUndo] = useState(false);
  if (!isLive(task)) return task.outcome?.stopReport === undefined ? null : <Stopped task={task} tenant={tenant} />;
  const reached = task.stop === undefined ? -1 : LEVELS.indexOf(task.stop.level);
  const softest = MODES.find(({ mode }) => BEGINS[mode] > reached)?.mode;
  const mode = wanted !== undefined && BEGINS[wanted] > reached ? wanted : softest;
  const isStopping = task.stop !== undefined;
  return (
    <section className="card lead" aria-label="Stop">
      <header>
        {isStopping ? <Status status="cancelling">Stopping</Status> : <h2>Stop</h2>}
        {task.stop !== undefined && (
          <span className="sm mute push">accepted {formatDuration(now - task.stop.reason.at)} ago</span>
        )}
      </header>
      <form
        className="pad stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (mode !== undefined) stop({ mode, undo, ...(reason !== '' && !isStopping && { reason }) });
        }}
      >
        {task.stop !== undefined && <Progress stop={task.stop} run={run} now={now} />}
        {me.rights.includes('cancel') ? (
          <>
            <ModeChoice mode={mode} reached={reached} onChange={setMode} />
            <label className="field">
              {isStopping ? 'Reason, the first one stays' : 'Reason'}
              <input
                type="text"
                maxLength={1_000}
                value={isStopping ? (task.stop?.reason.message ?? '') : reason}
                disabled={isStopping}
                onChange={(event) => setReason(event.target.value)}
              />
            </label>
            <UndoChoice isOn={undo || task.stop?.undo === true} isFixed={task.stop?.undo === true} onChange={setUndo} />
            <button type="submit" className="btn stop block" disabled={mode === undefined || answer.state === 'asking'}>
              {getButtonLabel(mode, isStopping)}
            </button>
          </>
        ) : (
          <p className="soft">You do not have the right to stop it.</p>
        )}
        <Answer answer={answer} />
      </form>
    </section>
  );
}

interface ModeChoiceProps {
  readonly mode: StopModeName | undefined;
  /** The level that a stop has reached; -1 without one. */
  readonly reached: number;
  readonly onChange: (mode: StopModeName) => void;
}

function ModeChoice({ mode, reached, onChange }: ModeChoiceProps): ReactNode {
  return (
    <fieldset className="plain">
      <legend className="vh">Mode</legend>
      {MODES.map(({ mode: one, words }) => {
        const isReached = BEGINS[one] <= reached;
        const why = BEGINS[one] === reached ? 'this level is reached' : 'a stop is never made softer';
        return (
          <label key={one} className="opt">
            <input
              type="radio"
              name="mode"
              checked={mode === one}
              disabled={isReached}
              onChange={() => onChange(one)}
            />
            {one}
            <small className="sm mute">{isReached ? why : words}</small>
          </label>
        );
      })}
    </fieldset>
  );
}

interface UndoChoiceProps {
  readonly isOn: boolean;
  /** It was asked for: it cannot be taken back. */
  readonly isFixed: boolean;
  readonly onChange: (undo: boolean) => void;
}

function UndoChoice({ isOn, isFixed, onChange }: UndoChoiceProps): ReactNode {
  return (
    <label className="opt">
      <input type="checkbox" checked={isOn} disabled={isFixed} onChange={() => onChange(!isOn)} />
      Undo what was completed
      <small className="sm mute">calls that can be undone, the last one first; up to 30 s more</small>
    </label>
  );
}

function getButtonLabel(mode: StopModeName | undefined, isStopping: boolean): string {
  if (mode === undefined) return 'Nothing more is waited for';
  if (mode === 'kill') return 'Kill now';
  return isStopping || mode === 'now' ? 'Stop now' : 'Stop';
}

interface ProgressProps extends Pick<StopPanelProps, 'run' | 'now'> {
  readonly stop: NonNullable<TaskRecord['stop']>;
}

/** Says what a stop waits for, and how long at most. */
function Progress({ stop, run, now }: ProgressProps): ReactNode {
  const open = run.callList.filter(({ state }) => state === 'running');
  const names = [...new Set(open.map(({ tool }) => tool))];
  const until = Math.max(stop.killAt, ...open.map(({ waitsUntil = 0 }) => waitsUntil));
  const level = LEVELS.indexOf(stop.level);
  return (
    <div>
      <p aria-live="polite">
        <b>{names.length === 0 ? 'Waiting for its worker' : `Waiting for ${joinWords(names)}`}</b>
        {until > now ? `, at most ${formatDuration(until - now)} more.` : '.'}
      </p>
      <div className="meter" role="img" aria-label={`The stop has reached ${stop.level}`}>
        {LEVELS.map((name, index) => (
          <i key={name} className={index < level ? '' : index === level ? 'half' : 'off'} />
        ))}
        {LEVELS.map((name) => (
          <span key={name} className="sm amber">
            {name}
          </span>
        ))}
      </div>
    </div>
  );
}

function Answer({ answer }: { readonly answer: StopAnswer }): ReactNode {
  if (answer.state === 'unanswered') {
    return (
      <p className="sm" role="alert">
        <b>The stop was not answered.</b> {answer.message}. It may have been accepted or not. Asking again is safe and
        counts once.
      </p>
    );
  }
  if (answer.state !== 'answered') return null;
  const words = {
    accepted: 'Accepted: it will end as stopped.',
    escalated: 'Accepted: it is now stopped harder.',
    unchanged: 'It was being stopped at least this hard already.',
    'too-late': 'It had already ended.',
    'not-found': 'There is no such task any more.',
  }[answer.answer];
  return (
    <p className="sm soft" role="status">
      {words}
    </p>
  );
}

function Stopped({ task, tenant }: Pick<StopPanelProps, 'task' | 'tenant'>): ReactNode {
  const { settledAfterMs } = (task.outcome?.stopReport ?? {}) as { settledAfterMs?: number };
  return (
    <section className="card lead">
      <header>
        <Status status="cancelled">Stopped</Status>
        {settledAfterMs !== undefined && <span className="sm mute push">after {formatDuration(settledAfterMs)}</span>}
      </header>
      <div className="pad">
        <Link className="btn block" to={addresses.report(task.id, tenant)}>
          Read the stop report
        </Link>
      </div>
    </section>
  );
}
