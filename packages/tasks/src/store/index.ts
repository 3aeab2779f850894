// For authors of stores. `StoreDriver` is unstable: it may change in any release.

// Write a store: a driver, wrapped by the store that checks arguments.
export { createCheckedStore } from '../ledger/checked/checked-store.ts';
export { createStoreRules } from '../ledger/store-rules.ts';
export type { StoreDriver, StoreRules } from '../ledger/driver.ts';
export type { StoreOptions } from '../ledger/store-options.ts';

// Connect processes over a bus that is not built in.
export type { Bus } from '../bus/bus.ts';

// What a driver receives and returns.
export type { ClaimRef, Orders } from '../delivery/worker-store.ts';
export type { Hint } from '../store.ts';

// What a driver shows of the activity that it keeps.
export { parseActivity } from '../ledger/rules/activity.ts';

// What a driver throws.
export { JournalFullError, JournalGapError, QuestionRefusedError } from '../errors.ts';
