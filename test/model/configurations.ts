import type { Configuration } from './check.ts';

/** Small enough for every change. */
export const SMALL: Configuration = { workers: 2, faults: 0, switches: ['CANCELS=1'] };

/** `npm run long -- model`, the smallest first. */
export const large: readonly Configuration[] = [
  { workers: 2, faults: 0, compact: true },
  { workers: 3, faults: 0, compact: true, switches: ['CANCELS=1'] },
  { workers: 3, faults: 0, compact: true },
  { workers: 2, faults: 1, compact: true, switches: ['CANCELS=1'] },
  { workers: 2, faults: 1, compact: true },
  { workers: 3, faults: 1, compact: true },
];

/** Bugs in the protocol, each with the smallest configuration that finds it. */
export const plantedModelBugs: readonly (Partial<Configuration> & { readonly bug: string })[] = [
  { bug: 'BUG_BLIND_END', faults: 0 },
  { bug: 'BUG_CANCEL_NOT_TOLD', faults: 0 },
  { bug: 'BUG_OLD_ORDERS_NOT_TOLD', faults: 0 },
  { bug: 'BUG_ANY_ORDER_CONFIRMED', faults: 0 },
  { bug: 'BUG_NOT_PARKED', faults: 0, switches: ['NO_POLL', 'CANCELS=1'] },
];

/** Bugs that need a fault to show: too many states to check on every change. */
export const slowModelBugs: readonly (readonly [bug: string, ...switches: string[]])[] = [
  ['BUG_SESSION_NOT_COMPARED'],
  ['BUG_FREED_WITHOUT_EPOCH'],
  ['BUG_TAKE_NOT_REPEATED'],
  ['BUG_SESSION_REUSED'],
  // Started, charged and cancelled: that takes two crashes.
  ['BUG_FAILS_CANCELLING', 'F=2', 'SUSPECT=0', 'CANCELS=1', 'CLAIMS=0', 'RELEASES=0'],
  ['BUG_NEIGHBOURS_CHARGED', 'CANCELS=0', 'CLAIMS=0', 'RELEASES=0'],
  ['BUG_LATE_RELEASE_KEEPS_CHARGE', 'SUSPECT=0', 'CANCELS=0', 'CLAIMS=0', 'RELEASES=0'],
  ['BUG_SUSPECTS_TOGETHER', 'CANCELS=0', 'CLAIMS=0', 'RELEASES=0'],
  ['BUG_REPEAT_HANDS_OUT_CLAIMED', 'CANCELS=0'],
];
