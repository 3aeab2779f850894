// For those who write a store.

// Write a store: a driver behind the one front that checks arguments.
export { createCheckedStore, createStoreRules } from '../stores/checked/checked-store.ts';
export type { StoreDriver, StoreRules } from '../stores/driver.ts';
export type { StoreOptions } from '../store.ts';

// What a driver is asked and returns.
export type { ClaimRef, Orders } from '../delivery.ts';
export type { Hint } from '../store.ts';

// What a driver throws.
export { JournalFullError, JournalGapError } from '../errors.ts';
