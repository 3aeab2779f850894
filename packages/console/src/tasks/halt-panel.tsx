import type { TaskClient } from '@whoa/server/task-client';
import type { HaltReceipt, PauseTarget } from '@whoa/tasks';
import { type ReactNode, useId, useState } from 'react';
import { describeError } from '../api/session.ts';
import { plural } from '../model/format.ts';
import { Button, TextBox } from '../page/parts.tsx';

/** What must be typed, so that a finger that slips halts nothing. */
const CONFIRMATION = 'halt';

interface HaltPanelProps {
  readonly client: TaskClient;
  readonly target: PauseTarget;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Pauses and stops everything, an agent or a tenant, after a typed confirmation, and says what still runs. */
export function HaltPanel({ client, target, onClose, onDone }: HaltPanelProps): ReactNode {
  const [typed, setTyped] = useState('');
  const [isParked, setParked] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [receipt, setReceipt] = useState<HaltReceipt>();
  const [problem, setProblem] = useState('');
  const box = useId();
  const scope = describeTarget(target);
  const halt = (): void => {
    setBusy(true);
    setProblem('');
    client
      .halt(target, { parked: isParked })
      .then(setReceipt, (error: unknown) => setProblem(describeError(error).message))
      .finally(() => {
        setBusy(false);
        onDone();
      });
  };
  const isConfirmed = typed.trim().toLowerCase() === CONFIRMATION;
  return (
    <section className="note stopping" aria-label="Halt">
      <p className="wide grow" aria-live="polite">
        <b>{headline({ scope, isBusy, receipt })}</b>
        <br />
        <span className="soft">{problem || (receipt === undefined ? WHAT : describeReceipt(receipt))}</span>
      </p>
      <span className="row">
        <TextBox
          size={12}
          aria-label={`Type ${CONFIRMATION} to confirm`}
          placeholder={`Type ${CONFIRMATION}`}
          autoCapitalize="none"
          autoComplete="off"
          value={typed}
          onChange={setTyped}
        />
        <span className="row">
          <input id={box} type="checkbox" checked={isParked} onChange={(event) => setParked(event.target.checked)} />
          <label htmlFor={box}>also tasks that wait for an answer</label>
        </span>
        <Button onClick={onClose}>Close</Button>
        <Button look="stop" disabled={!isConfirmed || isBusy} onClick={halt}>
          {receipt === undefined || receipt.isQuiet ? `Halt ${scope}` : 'Halt again'}
        </Button>
      </span>
    </section>
  );
}

const WHAT = 'Stops every running task now and starts no other until you resume. New tasks are accepted, and wait.';

function headline({ scope, isBusy, receipt }: { scope: string; isBusy: boolean; receipt: HaltReceipt | undefined }) {
  if (isBusy) return `Halting ${scope}: waiting until nothing runs…`;
  if (receipt === undefined) return `Halt ${scope}?`;
  const of = 'all' in receipt.target ? '' : ` of ${scope}`;
  if (receipt.isQuiet) return `Nothing${of} runs.`;
  return `${plural(receipt.left, 'task')}${of} still ${receipt.left === 1 ? 'runs' : 'run'}.`;
}

function describeReceipt({ stopped, waiting, others, isQuiet }: HaltReceipt): string {
  const parts = [`${plural(stopped, 'task')} stopped.`];
  if (waiting > 0) parts.push(`${plural(waiting, 'task')} ${waiting === 1 ? 'waits' : 'wait'} for an answer and stay.`);
  if (others > 0) parts.push(`${plural(others, 'other task')} ${others === 1 ? 'runs' : 'run'} in this store.`);
  if (!isQuiet) parts.push('Calls that must finish may take as long as their tools allow.');
  return parts.join(' ');
}

function describeTarget(target: PauseTarget): string {
  if ('all' in target) return 'everything';
  return 'agent' in target ? `agent ${target.agent}` : `tenant ${target.tenant}`;
}

interface PausedProps {
  readonly client: TaskClient;
  readonly paused: readonly PauseTarget[];
  readonly onDone: () => void;
}

/** Says what is paused, and how each pause ends. */
export function PausedNotes({ client, paused, onDone }: PausedProps): ReactNode {
  const [problem, setProblem] = useState('');
  const resume = (target: PauseTarget): void => {
    setProblem('');
    client
      .pause(target, false)
      .catch((error: unknown) => setProblem(describeError(error).message))
      .finally(onDone);
  };
  return paused.map((target) => {
    const scope = describeTarget(target);
    const what =
      'all' in target ? 'Everything is paused: no task starts.' : `The ${scope} is paused: no task of it starts.`;
    return (
      <div className="note" role="status" key={scope}>
        <b className="grow">{problem || what}</b>
        <Button look="tiny push" onClick={() => resume(target)}>
          Resume {scope}
        </Button>
      </div>
    );
  });
}
