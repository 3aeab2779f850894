import { NO_USAGE } from '@whoa/core/internal';
import type { ProviderWait, TaskActivity } from '../../task.ts';

/** Returns an activity as one short text for a store to keep, with the epoch of the claim that wrote it. */
export function serializeActivity(
  { turns, calls, usage, spending, providerWait }: TaskActivity,
  epoch: number,
): string {
  const used = usage ?? (spending && NO_USAGE);
  const spent = used === undefined ? [] : [used.inputTokens, used.outputTokens, used.isComplete ? 1 : 0];
  const cached = usage?.cachedInputTokens ?? 0;
  // Older releases ignore these.
  if (cached > 0 || spending !== undefined) spent.push(cached);
  if (spending !== undefined) spent.push(spending.spent, spending.estimated, spending.reserved);
  const wait = providerWait === undefined ? [] : [WAIT + JSON.stringify(providerWait)];
  return [epoch, turns, calls, ...spent, ...wait].join(' ');
}

/** Stands before the part that is not numbers. */
const WAIT = '|';

/**
 * Returns what the head of a task shows of a kept activity. A task waits for a provider only until it is taken again:
 * handing back, freeing and taking raise the epoch.
 *
 * @returns The activity.
 */
export function parseActivity(
  kept: string,
  { epoch, endedAt }: { readonly epoch: number; readonly endedAt?: number | undefined },
): TaskActivity {
  const [numbers = '', ...wait] = kept.split(` ${WAIT}`);
  const [writtenIn = 0, turns, calls, inputTokens, outputTokens, complete, cached = 0, ...money] = numbers
    .split(' ')
    .map(Number);
  const [spent, estimated = 0, reserved = 0] = money;
  const isPutOff = endedAt === undefined && writtenIn + 1 === epoch && wait.length > 0;
  return {
    turns: turns!,
    calls: calls!,
    ...(inputTokens !== undefined && {
      usage: {
        inputTokens,
        ...(cached > 0 && { cachedInputTokens: cached }),
        outputTokens: outputTokens!,
        isComplete: complete === 1,
      },
    }),
    ...(spent !== undefined && { spending: { spent, estimated, reserved } }),
    ...(isPutOff && { providerWait: JSON.parse(wait.join(` ${WAIT}`)) as ProviderWait }),
  };
}
