import {
  checkStoreModel,
  formatContractReports,
  runContractCase,
  runStoreContract,
  type StoreKind,
  storeContract,
} from '@whoa/tasks/testing';
import * as fc from 'fast-check';
import { expect } from 'vitest';

/** The contract is about results, not speed: a busy machine may take this long for one request. */
export const BUSY_MS = 60_000;

/** Runs the contract. `CONTRACT_CASES='a release'` runs only cases whose titles have this text. */
export async function expectContract(kind: StoreKind): Promise<void> {
  const text = process.env['CONTRACT_CASES'];
  if (text !== undefined) {
    const cases = storeContract.filter(({ title }) => title.includes(text));
    expect(cases, `no case of the contract has '${text}' in its title`).not.toEqual([]);
    for (const one of cases) await runContractCase(kind, one);
    return;
  }
  const report = await runStoreContract(kind);
  console.log(formatContractReports([report]));
  expect(report.failed).toEqual([]);
}

/** Compares the store with the model of the contract, over random histories. */
export const expectModel = (kind: StoreKind, runs: number): Promise<void> =>
  checkStoreModel(fc, kind, { runs, seed: 2 });
