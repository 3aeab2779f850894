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

/** The cases about who is notified of what. */
export const NOTIFICATIONS = /notif|rung|told|learns|watche/;

/** Runs the contract, or only the cases with these titles. `CONTRACT_CASES='a release'` runs only cases whose titles have this text. */
export async function expectContract(kind: StoreKind, titles?: RegExp): Promise<void> {
  const text = process.env['CONTRACT_CASES'];
  if (text !== undefined || titles !== undefined) {
    const cases = storeContract.filter(({ title }) => titles?.test(title) ?? title.includes(text!));
    expect(cases, `no case of the contract has such a title`).not.toEqual([]);
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
