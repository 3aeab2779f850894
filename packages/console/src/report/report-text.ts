import type { StopReport } from '@whoa/core';
import { formatDuration, plural } from '../model/format.ts';
import type { ShownStatus } from '../model/shown-status.ts';

type StoppedCall = StopReport['calls'][number];

/** A part of the report: calls with the same fate. */
export interface ReportGroup {
  readonly status: ShownStatus;
  readonly title: string;
  readonly items: readonly {
    readonly key: string;
    readonly name: string;
    readonly afterMs: number | undefined;
    readonly words: string;
    readonly callId?: string;
  }[];
}

/** The report in one or two sentences: what is uncomfortable comes first. */
export function describeStop(report: StopReport): string {
  const { calls, abandoned = [], isClean, settledAfterMs, cleanupErrors } = report;
  const lost = calls.filter(({ state }) => state === 'unknown').length;
  const survivors = calls.reduce((sum, call) => sum + (call.survivors ?? 0), 0);
  const took = `Stopped after ${formatDuration(settledAfterMs)}.`;
  if (isClean) return `${took} Nothing was left behind.`;
  if (lost > 0) return `${took} ${plural(lost, 'call was', 'calls were')} abandoned and may still take effect.`;
  if (survivors > 0) return `${took} ${plural(survivors, 'process', 'processes')} may still run.`;
  if (abandoned.length > 0) return `${took} ${abandoned[0]!.name} was abandoned and may still run.`;
  if (cleanupErrors.length > 0) return `${took} ${plural(cleanupErrors.length, 'cleanup')} failed.`;
  return `${took} Not everything could be verified.`;
}

type ReportItem = ReportGroup['items'][number];

/** The calls by how they ended: the uncomfortable groups first. Empty groups are left out. */
export function toGroups(report: StopReport): readonly ReportGroup[] {
  const having = (state: StoppedCall['state']): readonly StoppedCall[] =>
    report.calls.filter((call) => call.state === state);
  const groups: ReportGroup[] = [
    { status: 'unknown', title: 'Unknown: no longer waited for', items: abandonedItems(report) },
    { status: 'failed', title: 'Not cleaned up', items: uncleanItems(report) },
    { status: 'interrupted', title: 'Interrupted, output kept', items: interruptedItems(report) },
    { status: 'failed', title: 'Failed', items: having('failed').map((call) => toItem(call, describeProcesses(call))) },
    { status: 'undone', title: 'Undone, the last one first', items: undoneItems(report) },
    {
      status: 'not-started',
      title: 'Not started',
      items: having('not-started').map((call) => toItem(call, 'Never began, had no effect.')),
    },
    {
      status: 'finished',
      title: 'Finished',
      items: having('finished').map((call) => toItem(call, describeFinished(call))),
    },
  ];
  return groups.filter(({ items }) => items.length > 0);
}

function toItem({ callId, tool, state, afterMs }: StoppedCall, words: string): ReportItem {
  return {
    key: `${callId} ${state}`,
    name: tool,
    afterMs: state === 'not-started' ? undefined : afterMs,
    words,
    callId,
  };
}

function abandonedItems({ calls, abandoned = [] }: StopReport): ReportItem[] {
  const words = 'It ignored the stop. What it still returns is written down apart and changes nothing here.';
  return [
    ...calls.filter(({ state }) => state === 'unknown').map((call) => toItem(call, words)),
    ...abandoned.map(({ name, afterMs }) => ({ key: name, name, afterMs, words: 'It may still run.' })),
  ];
}

function uncleanItems({ calls, cleanupErrors }: StopReport): ReportItem[] {
  const surviving = calls.filter(({ survivors = 0 }) => survivors > 0);
  return [
    ...surviving.map((call) => toItem(call, `${plural(call.survivors!, 'process', 'processes')} may still run.`)),
    ...cleanupErrors.map((words, index) => ({ key: `cleanup ${index}`, name: 'cleanup', afterMs: undefined, words })),
  ];
}

function interruptedItems({ calls, reply }: StopReport): ReportItem[] {
  const interrupted = calls.filter(({ state }) => state === 'interrupted');
  const items = interrupted.map((call) =>
    toItem(call, describeProcesses(call) || 'What it had returned so far is kept.'),
  );
  if (reply === undefined) return items;
  const words = `${plural(reply.characters, 'character')} of the reply kept.`;
  return [...items, { key: 'reply', name: 'reply', afterMs: reply.afterMs, words }];
}

function undoneItems({ calls }: StopReport): ReportItem[] {
  return calls
    .filter(({ undo }) => undo !== undefined)
    .toReversed()
    .map((call) => {
      const failure = call.undo === 'failed' ? 'The undo failed.' : 'The undo did not end in time.';
      const item = toItem(call, call.undo === 'undone' ? 'Undone.' : failure);
      return { ...item, key: `undo ${call.callId}`, afterMs: undefined };
    });
}

function describeFinished(call: StoppedCall): string {
  if (call.wasWaitedFor) return 'Waited for, because it must not be interrupted.';
  return call.afterMs < 0
    ? 'Before the stop.'
    : describeProcesses(call) || 'It finished before it had to be interrupted.';
}

function describeProcesses({ processesEnded, unverified }: StoppedCall): string {
  if (!processesEnded) return '';
  return `${plural(processesEnded, 'process', 'processes')} ended${unverified ? ', not verified' : ', none survived'}.`;
}
