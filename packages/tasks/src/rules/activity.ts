import type { TaskActivity } from '../task.ts';

/** Returns an activity as one short text for a store to keep, with the epoch of the claim that wrote it. */
export function serializeActivity({ turns, calls, questions, usage }: TaskActivity, epoch: number): string {
  const spent = usage === undefined ? [] : [usage.inputTokens, usage.outputTokens, usage.isComplete ? 1 : 0];
  return [epoch, turns, calls, questions, ...spent].join(' ');
}

/**
 * Returns what the head of a task shows of a kept activity. A question waits only while the claim that asked it holds
 * the task: handing back, freeing and taking raise the epoch.
 *
 * @returns The activity.
 */
export function parseActivity(
  kept: string,
  { epoch, endedAt }: { readonly epoch: number; readonly endedAt?: number | undefined },
): TaskActivity {
  const [writtenIn, turns, calls, questions, inputTokens, outputTokens, complete] = kept.split(' ').map(Number);
  const isHeld = endedAt === undefined && writtenIn === epoch;
  return {
    turns: turns!,
    calls: calls!,
    questions: isHeld ? questions! : 0,
    ...(inputTokens !== undefined && {
      usage: { inputTokens, outputTokens: outputTokens!, isComplete: complete === 1 },
    }),
  };
}
