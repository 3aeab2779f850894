import { checkStoreModel, formatContractReports, runStoreContract, type StoreKind } from '@whoa/tasks/testing';
import * as fc from 'fast-check';
import { expect } from 'vitest';

/** The contract is about what a store does, not how fast: a busy machine may take this long for one request. */
export const BUSY_MS = 60_000;

export async function expectContract(kind: StoreKind): Promise<void> {
  const report = await runStoreContract(kind);
  console.log(formatContractReports([report]));
  expect(report.failed).toEqual([]);
}

/** Compares the store with the model of the contract, over random histories. */
export const expectModel = (kind: StoreKind, runs: number): Promise<void> =>
  checkStoreModel(fc, kind, { runs, seed: 2 });
