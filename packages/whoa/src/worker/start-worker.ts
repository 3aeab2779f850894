import { describeError } from '@whoa/core/internal';
import type { Telemetry } from '@whoa/server/telemetry';
import { createRunner, type RunnerEvent, type TaskEngine, type TaskStore } from '@whoa/tasks';
import type { OpenAgents } from '../agent/open-agents.ts';
import type { WhoaConfig } from '../config/config.ts';
import { shortId } from '../tasks/local-tasks.ts';
import type { Screen } from '../terminal/screen.ts';
import { oneLine } from '../terminal/text/plain-text.ts';

const READY_MS = 2_000;
const MAX_LINE_CHARACTERS = 300;

export interface WorkerOptions extends Pick<OpenAgents, 'agents' | 'approvals' | 'hooks'> {
  readonly store: TaskStore;
  /** Hands out the tasks. */
  readonly engine: TaskEngine;
  readonly concurrency: number;
  readonly config: Pick<WhoaConfig, 'resume' | 'stopMode' | 'waitForProvider'>;
  readonly telemetry: Telemetry;
  readonly screen: Screen;
}

/** Runs tasks until it is disposed. Then it returns unfinished tasks to the store. */
export interface Worker extends AsyncDisposable {
  readonly name: string;
  /** Rejects when the store refuses this process, and will not get better by itself: its format has changed. */
  readonly refused: Promise<never>;
  isReady(): Promise<boolean>;
}

export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { store, engine, agents, approvals, hooks, concurrency, config, telemetry, screen } = options;
  const { resume, stopMode, waitForProvider } = config;
  const { promise: refused, reject: refuse } = Promise.withResolvers<never>();
  refused.catch(() => {});
  const printEvent = (event: RunnerEvent): void => {
    if ('error' in event && (event.error as { code?: unknown } | undefined)?.code === 'STORE_SETUP')
      refuse(event.error);
    else if (screen.asJson) screen.data(toLogData(event));
    else screen.note(formatEvent(event));
  };
  const runner = createRunner(
    telemetry.observe({
      store,
      agents,
      approvals,
      ...(resume !== undefined && { resume }),
      ...(waitForProvider !== undefined && { waitForProvider }),
      hooks: { ...hooks, any: (event) => event.type !== 'hook-error' && printEvent(event) },
    }),
  );
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    if (runner.live > 0 && !screen.asJson)
      screen.note(`handing back ${runner.live} running; another signal exits immediately`);
    // The mode says how running calls are stopped before their tasks are handed back.
    return engine.close(stopMode);
  };
  await engine.serve(runner, { concurrency });
  return {
    name: runner.worker,
    refused,
    isReady: async () => stopped === undefined && (await answers(store)) && (await engine.isReady()),
    [Symbol.asyncDispose]: () => (stopped ??= stop()),
  };
}

/** Reads a task that does not exist, to see whether the store responds. */
async function answers(store: TaskStore): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), READY_MS);
  store
    .get({ tenant: 'readyz', id: 't-readyz' })
    .then(
      () => resolve(true),
      () => resolve(false),
    )
    .finally(() => clearTimeout(timer));
  return promise;
}

function toLogData(event: RunnerEvent): object {
  return 'error' in event ? { ...event, error: describeError(event.error) } : event;
}

function formatEvent(event: RunnerEvent): string {
  if (event.type === 'task-start') return `▸ started ${shortId(event.id)} (${oneLine(event.tenant, 60)})`;
  if (event.type === 'task-end' || event.type === 'task-left') return `▪ ${shortId(event.id)} ${event.status}`;
  return `✘ ${event.type}: ${oneLine(describeError(event.error), MAX_LINE_CHARACTERS)}`;
}
