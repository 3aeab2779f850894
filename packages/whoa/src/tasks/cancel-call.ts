import { EXIT } from '../command.ts';
import type { Screen } from '../terminal/screen.ts';
import { createLostCheck, type TaskSource } from './source/task-source.ts';

/** Where a cancel is sent and reported. */
export interface CancelContext {
  readonly source: TaskSource;
  readonly screen: Screen;
  readonly waits: boolean;
}

const ANSWERS: Readonly<Record<string, string>> = {
  accepted: 'is interrupted; the task continues',
  unchanged: 'is already being stopped',
  'too-late': 'is not running: it has ended, or there is no such call',
  refused: 'must not be interrupted; it was not stopped',
};

/** Stops one call of a task and returns the exit code. */
export async function cancelCall(
  id: string,
  { callId, reason }: { readonly callId: string; readonly reason: string | undefined },
  context: CancelContext,
): Promise<number> {
  const { source, screen, waits } = context;
  const receipt = await source.cancelCall(id, callId, reason);
  screen.data({ type: 'receipt', id, callId, ...receipt });
  if (receipt.result !== 'accepted') {
    const why = 'status' in receipt ? `the task is ${receipt.status}` : receipt.result;
    screen.line(`${callId} cannot be stopped: ${why}`);
    return EXIT.failed;
  }
  if (!waits) return EXIT.success;
  const answer = await waitForAnswer(id, receipt.number, context);
  screen.data({ type: 'result', id, callId, answer });
  screen.line(`${callId} ${ANSWERS[answer] ?? answer}`);
  return answer === 'accepted' || answer === 'escalated' || answer === 'unchanged' ? EXIT.success : EXIT.failed;
}

/** Waits for the worker's response to the command. */
async function waitForAnswer(id: string, number: number, { source, screen }: CancelContext): Promise<string> {
  screen.status(() => 'waiting for the worker');
  let answer: string | undefined;
  const isLostForGood = createLostCheck(source);
  await source.follow(id, {
    onEntry({ event }) {
      const handled = event as { readonly type?: string; readonly number?: number; readonly receipt?: string };
      if (handled.type !== 'command-handled' || handled.number !== number) return undefined;
      answer = handled.receipt ?? 'not-found';
      return 'stop';
    },
    onRecord: async (record) => ((await isLostForGood(record)) ? 'stop' : undefined),
  });
  screen.status(undefined);
  return answer ?? 'too-late';
}
