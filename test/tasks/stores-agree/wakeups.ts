import type { TaskSummary } from '@whoa/tasks';
import { SETTLE } from '../../../packages/tasks/src/ledger/rules/rules.ts';
import { toReadyQueueName } from '../../../packages/tasks/src/ledger/rules/suspects.ts';

/** Stores rarely record that a worker still waits, so one that asked longer ago may already count as gone. */
const FRESH_MS = 30_000;

/**
 * The workers that wait for work in one store. The store may notify them in any order, but a task must not become ready
 * while a worker waits and none is notified.
 */
export class Waiters {
  readonly #waiting = new Map<string, { readonly agents: readonly string[]; readonly at: number }>();

  clear(): void {
    this.#waiting.clear();
  }

  /** A take returned fewer tasks than the worker asked for, or all of them. */
  recordTake({ worker, agents, at, isShort }: Take): void {
    if (isShort) this.#waiting.set(worker, { agents, at });
    else this.#waiting.delete(worker);
  }

  /** Returns a task for which a worker should have been notified, if none was. */
  findMissedRing({ before, after, now }: Moments, rung: readonly string[]): string | undefined {
    const waiting = [...this.#waiting.values()];
    for (const worker of rung) this.#waiting.delete(worker);
    if (rung.length > 0) return undefined;
    const known = new Map(before.map((task) => [task.id, task]));
    const became = after.filter(({ id, stage, stageAt }) => {
      const old = known.get(id);
      return stage === 'ready' && stageAt === now && (old?.stage !== 'ready' || old.stageAt !== now);
    });
    const isWaitedFor = (task: TaskSummary): boolean =>
      waiting.some(
        ({ agents, at }) =>
          now - at < FRESH_MS && now >= at && (toReadyQueueName(task) === SETTLE || agents.includes(task.agent)),
      );
    return became.find(isWaitedFor)?.id;
  }
}

interface Take {
  readonly worker: string;
  readonly agents: readonly string[];
  readonly at: number;
  readonly isShort: boolean;
}

interface Moments {
  readonly before: readonly TaskSummary[];
  readonly after: readonly TaskSummary[];
  readonly now: number;
}
