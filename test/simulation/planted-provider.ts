import { type PlantedBug, plantOn } from './planted-bug.ts';

const one = plantOn('provider');

/** What could be wrong with a task that waits for the provider of its model. */
export const plantedInProvider: readonly PlantedBug[] = [
  one(
    'a task fails though its provider comes back',
    'run/execution.ts',
    'if (delayMs !== undefined || (isLeaving && !this.holder.isStopOrdered)) {',
    'if (isLeaving && !this.holder.isStopOrdered) {',
  ),
  one(
    'a task waits for ever for its provider',
    'run/provider-wait.ts',
    'const { since = now, attempts = 0 } = this.#before ?? {};',
    'const { since, attempts } = { since: now, attempts: this.#before?.attempts ?? 0 };',
  ),
  one(
    'a stop waits for the provider',
    'ledger/operations/work.ts',
    "if (delayMs > 0 && released.status === 'init') delayUntil(",
    'if (delayMs > 0) delayUntil(',
  ),
  one(
    'a model sees that it was away',
    'run/recovery/continue.ts',
    'const isSilent = unknown.length === 0 && update === undefined;',
    'const isSilent = unknown.length === 0 && update === undefined && recovery.wait === undefined;',
  ),
];
