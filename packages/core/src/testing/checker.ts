import { isDeepStrictEqual } from 'node:util';
import type { Effect, HistoryEntry, Violation } from './history.ts';
import { type CheckOptions, RunRecord } from './run-record.ts';
import { findCalls, TaskRecord } from './task-record.ts';

/**
 * Checks a recorded history against the promises.
 *
 * @returns Each promise it breaks; empty when it keeps them all.
 */
export function checkHistory(history: readonly HistoryEntry[], options: CheckOptions = {}): Violation[] {
  const violations: Violation[] = [];
  const runs = new Records((id) => new RunRecord(id, violations));
  const tasks = new Records((id) => new TaskRecord(id, violations));
  const owners = new Map<string, { effect(effect: Effect): void }>();
  for (const entry of history) {
    // Effects are recorded when they happen; the journal that says which task they belong to may be read later.
    if (entry.seen === 'journal') for (const call of findCalls(entry.entries)) owners.set(call, tasks.get(entry.id));
  }
  for (const entry of history) {
    switch (entry.seen) {
      case 'event':
        if (entry.event.type === 'call-start') owners.set(entry.event.callId, runs.get(entry.event.runId));
        runs.get(entry.event.runId).event(entry.event);
        break;
      case 'receipt':
        runs.get(entry.runId).receipt(entry.receipt);
        break;
      case 'outcome':
        runs.get(entry.runId).outcome(entry.outcome);
        break;
      case 'call-cancel':
        runs.get(entry.runId).cancelledCalls.add(entry.callId);
        break;
      case 'effect':
        owners.get(entry.callId)?.effect(entry);
        break;
      case 'task':
        tasks.get(entry.task.id).read(entry.task);
        break;
      case 'task-receipt':
        tasks.get(entry.id).receipt(entry.receipt);
        break;
      case 'journal':
        tasks.get(entry.id).journal(entry.entries);
        break;
      case 'write':
        tasks.get(entry.id).write(entry.epoch, entry.accepted);
        break;
      default:
        violations.push(...findViolations(entry));
    }
  }
  for (const run of runs.all()) run.finish(options);
  for (const task of tasks.all()) task.finish();
  return violations;
}

/** Violations that one entry shows by itself. */
function findViolations(entry: Extract<HistoryEntry, { seen: 'leftovers' | 'left' | 'stranger' }>): Violation[] {
  switch (entry.seen) {
    case 'leftovers': {
      const { name, children, listeners } = entry;
      if (children + listeners === 0) return [];
      return [{ promise: 'P11', what: `${name} still has ${children} children and ${listeners} listeners` }];
    }
    case 'left':
      return entry.things.map((thing) => ({ promise: 'P11', what: `${entry.where} left ${thing}` }));
    case 'stranger':
      if (isDeepStrictEqual(entry.answer, entry.forMissing)) return [];
      return [{ promise: 'P12', what: `a stranger can tell that something is there by ${entry.asked}` }];
  }
}

/** Records by id, created on first use. */
class Records<Kept> {
  readonly #kept = new Map<string, Kept>();
  readonly #create: (id: string) => Kept;

  constructor(create: (id: string) => Kept) {
    this.#create = create;
  }

  get(id: string): Kept {
    let kept = this.#kept.get(id);
    if (kept === undefined) this.#kept.set(id, (kept = this.#create(id)));
    return kept;
  }

  all(): Iterable<Kept> {
    return this.#kept.values();
  }
}
