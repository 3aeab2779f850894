import type { CancelTaskOptions, TaskClient } from '@whoa/server/task-client';
import type { StoreCancelReceipt, TaskSummary } from '@whoa/tasks';
import { type ReactNode, useCallback, useState } from 'react';
import { describeError } from '../api/session.ts';
import { Button } from '../page/parts.tsx';

/** How a stop was answered. An unanswered one is neither a success nor a failure: asking again is safe. */
export type StopAnswer =
  | { readonly state: 'none' | 'asking' }
  | { readonly state: 'answered'; readonly answer: StoreCancelReceipt['result'] }
  | { readonly state: 'unanswered'; readonly message: string };

/** Stops a task, and keeps how it ended. */
export function useStop(
  client: TaskClient,
  { id, onAnswer }: { readonly id: string; readonly onAnswer?: () => void },
): readonly [answer: StopAnswer, stop: (options: CancelTaskOptions) => void] {
  const [answer, setAnswer] = useState<StopAnswer>({ state: 'none' });
  const stop = useCallback(
    (options: CancelTaskOptions) => {
      setAnswer({ state: 'asking' });
      client
        .cancel(id, options)
        .then(
          (receipt) => setAnswer({ state: 'answered', answer: receipt.result }),
          (error: unknown) => setAnswer({ state: 'unanswered', message: describeError(error).message }),
        )
        .finally(onAnswer);
    },
    [client, id, onAnswer],
  );
  return [answer, stop];
}

/** Stops a task from its row. Each press is harder than what has been reached. */
export function StopButton({ task, client }: { readonly task: TaskSummary; readonly client: TaskClient }): ReactNode {
  const [answer, stop] = useStop(client, { id: task.id });
  const next = task.status === 'cancelling' ? (task.stop?.level === 'drain' ? 'now' : 'kill') : 'graceful';
  const words = { graceful: 'Stop', now: 'Stop now', kill: 'Kill' }[next];
  if (task.stop?.level === 'kill') return <span className="sm mute">not waited for</span>;
  const isBusy = answer.state === 'asking';
  return (
    <Button
      look="tiny so"
      aria-label={`${answer.state === 'unanswered' ? 'Ask again' : words}: ${task.title ?? task.id}`}
      title={answer.state === 'unanswered' ? `Not answered: ${answer.message}. Asking again is safe.` : undefined}
      disabled={isBusy}
      onClick={() => stop({ mode: next })}
    >
      {answer.state === 'unanswered' ? 'Ask again' : words}
    </Button>
  );
}
