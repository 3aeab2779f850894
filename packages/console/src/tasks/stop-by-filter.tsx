import type { StoppedTask, TaskClient } from '@whoa/server/task-client';
import { type ReactNode, useEffect, useState } from 'react';
import { describeError } from '../api/session.ts';
import { joinWords, plural } from '../model/format.ts';
import { isLive, STATUS_LABELS } from '../model/shown-status.ts';
import { Button, TextBox } from '../page/parts.tsx';
import { ModeSelect, type StopModeName } from '../task/stop-mode.tsx';
import type { AddressFilter } from './use-filter.ts';

interface StopByFilterProps {
  readonly client: TaskClient;
  readonly filter: AddressFilter;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Stops every task that matches. A dry run says first how many that are. */
export function StopByFilter({ client, filter, onClose, onDone }: StopByFilterProps): ReactNode {
  const { status, agent, conversation } = filter.asked;
  const canStop = status === undefined || isLive({ status });
  const [found, setFound] = useState<readonly StoppedTask[]>();
  const [done, setDone] = useState<readonly StoppedTask[]>();
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [mode, setMode] = useState<StopModeName>('graceful');
  const [reason, setReason] = useState('');
  const wanted =
    status === undefined && agent === undefined && conversation === undefined
      ? { all: true as const }
      : { ...(status && { status }), ...(agent && { agent }), ...(conversation && { conversation }) };
  const key = JSON.stringify(wanted);
  useEffect(() => {
    let isCurrent = true;
    setFound(undefined);
    setDone(undefined);
    if (!canStop) return undefined;
    client.cancelAll(JSON.parse(key) as typeof wanted, { dryRun: true }).then(
      (tasks) => isCurrent && setFound(tasks),
      (error: unknown) => isCurrent && setProblem(describeError(error).message),
    );
    return () => {
      isCurrent = false;
    };
  }, [client, key, canStop]);
  const stoppable = (found ?? []).filter((task) => task.status !== 'cancelling');
  const stop = (): void => {
    setBusy(true);
    client
      .cancelAll(wanted, { mode, ...(reason !== '' && { reason }) })
      .then(setDone, (error: unknown) => setProblem(describeError(error).message))
      .finally(() => {
        setBusy(false);
        onDone();
      });
  };
  return (
    <section className="note stopping" aria-label="Stop by filter">
      <p className="wide grow" aria-live="polite">
        <b>{headline({ canStop, found, stoppable, done })}</b>
        <br />
        <span className="soft">{problem || described(found ?? [], filter)}</span>
      </p>
      <span className="row">
        <ModeSelect mode={mode} onChange={setMode} />
        <TextBox size={16} aria-label="Reason" placeholder="Reason" value={reason} onChange={setReason} />
        <Button onClick={onClose}>Close</Button>
        <Button look="stop" disabled={stoppable.length === 0 || isBusy || done !== undefined} onClick={stop}>
          Stop {plural(stoppable.length, 'task')}
        </Button>
      </span>
    </section>
  );
}

interface Headline {
  readonly canStop: boolean;
  readonly found: readonly StoppedTask[] | undefined;
  readonly stoppable: readonly StoppedTask[];
  readonly done: readonly StoppedTask[] | undefined;
}

function headline({ canStop, found, stoppable, done }: Headline): string {
  if (!canStop) return 'Tasks with this status have ended.';
  if (done !== undefined) {
    const accepted = done.filter(({ result }) => result === 'accepted' || result === 'escalated').length;
    return `${plural(accepted, 'stop')} accepted${accepted === done.length ? '' : `, ${done.length - accepted} had ended or were being stopped`}.`;
  }
  if (found === undefined) return 'Counting what would be stopped…';
  return `Dry run: ${plural(stoppable.length, 'task')} would be stopped.`;
}

function described(found: readonly StoppedTask[], { values: { q } }: AddressFilter): string {
  const byStatus = Map.groupBy(found, ({ status }) => status);
  const words = [...byStatus].map(([status, tasks]) => `${tasks.length} ${STATUS_LABELS[status]}`);
  const search = q === undefined ? '' : ' The words you search for do not narrow it.';
  return `${words.length === 0 ? 'Nothing is live.' : `${joinWords(words)}.`}${search}`;
}
