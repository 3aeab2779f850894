import type { RunEvent, StopReport, Usage } from '@whoa/core';
import type { TaskOutcome } from '@whoa/tasks';
import type { Meter } from './meter.ts';

/** Something an operator may want to read: ids, names and numbers, and nothing that a user or a model wrote. */
export interface TelemetryLog {
  readonly level: 'info' | 'warn' | 'error';
  readonly event:
    | 'task-failed'
    | 'task-lost'
    | 'work-abandoned'
    | 'work-late'
    | 'process-leftover'
    | 'store-error'
    | 'webhook-failed';
  readonly taskId?: string;
  readonly agent?: string;
  /** How many, or the code of an error. */
  readonly value?: number | string;
}

/** What a log is about. */
type About = Pick<TelemetryLog, 'taskId'> & { readonly agent: string };

/** Counts what runs used, and what they left behind. */
export class WorkCounts {
  readonly #meter: Meter;
  readonly #log: (log: TelemetryLog) => void;

  constructor(meter: Meter, log: (log: TelemetryLog) => void) {
    this.#meter = meter;
    this.#log = log;
  }

  recordRun(event: RunEvent, about: About, isNested = false): void {
    if (event.type === 'call-event') this.recordRun(event.event as RunEvent, about, true);
    else if (event.type === 'work-abandoned' || (event.type === 'call-end' && event.result.state === 'unknown')) {
      this.#recordAbandoned(1, about);
    } else if (event.type === 'call-ended-late') {
      this.#meter.series('whoa.work.late').add();
      this.#log({ level: 'warn', event: 'work-late', ...about });
    } else if (event.type === 'run-end' && !isNested) {
      // What sub-agents used and left is in the outcome of their parent.
      const { outcome } = event;
      this.#recordUsage(outcome.usage, about);
      if (outcome.status === 'cancelled') this.#recordLeftovers(outcome.stop, about);
    }
  }

  /** For work that is not an agent, its outcome is all that is known. */
  recordOutcome({ usage, stopReport }: TaskOutcome, about: About): void {
    if (usage !== undefined) this.#recordUsage(usage, about);
    if (stopReport === undefined) return;
    const report = stopReport as unknown as StopReport;
    this.#recordAbandoned(
      report.calls.filter(({ state }) => state === 'unknown').length + (report.abandoned?.length ?? 0),
      about,
    );
    this.#recordLeftovers(report, about);
  }

  #recordUsage({ inputTokens, outputTokens }: Usage, { agent }: About): void {
    this.#meter.series('whoa.model.tokens', agent, 'input').add(inputTokens);
    this.#meter.series('whoa.model.tokens', agent, 'output').add(outputTokens);
  }

  #recordAbandoned(value: number, about: About): void {
    if (value === 0) return;
    this.#meter.series('whoa.work.abandoned').add(value);
    this.#log({ level: 'warn', event: 'work-abandoned', ...about, value });
  }

  #recordLeftovers({ calls }: StopReport, about: About): void {
    const value = calls.reduce((sum, { survivors = 0 }) => sum + survivors, 0);
    if (value === 0) return;
    this.#meter.series('whoa.process.survivors').add(value);
    this.#log({ level: 'warn', event: 'process-leftover', ...about, value });
  }
}
