import { formatStopReport, type StopReport, type Usage } from '@whoa/core';
import type { TaskRecord } from '@whoa/tasks';
import { shortId } from '../../tasks/local-tasks.ts';
import type { Screen } from '../screen.ts';
import { formatDuration } from '../text/durations.ts';
import { oneLine } from '../text/plain-text.ts';

/** Prints how a run of this terminal ended. */
export function printEnd(task: TaskRecord, screen: Screen): void {
  const { id, status, outcome } = task;
  screen.status(undefined);
  screen.endLine();
  const took = task.startedAt === undefined ? 0 : (task.endedAt ?? 0) - task.startedAt;
  if (status === 'success') {
    screen.note(
      screen.style('dim', `✔ ${shortId(id)} done in ${formatDuration(took)}${describeTokens(outcome?.usage)}`),
    );
  } else if (status === 'failed') {
    screen.note(
      `${screen.style('red', '✘ failed:')} ${oneLine(outcome?.error?.message ?? 'no reason was given', 2_000)}`,
    );
  } else if (outcome?.stopReport !== undefined) {
    screen.note(formatStopReport(outcome.stopReport as unknown as StopReport));
  } else {
    screen.note('Cancelled before it began.');
  }
}

/** Describes the model tokens of a task. If the provider has not reported all of them, there were more. */
export function describeTokens(usage: Usage | undefined): string {
  if (usage === undefined) return '';
  return ` · ${usage.inputTokens} tokens in, ${usage.outputTokens} out${usage.isComplete ? '' : ', or more'}`;
}

/** The same in a column: `1234`, or `1234+`. */
export function countTokens(usage: Usage | undefined): string {
  return usage === undefined ? '' : `${usage.inputTokens + usage.outputTokens}${usage.isComplete ? '' : '+'}`;
}
