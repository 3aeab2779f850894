import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findSkipReason, runContractCase, storeContract } from '../testing/contract.ts';
import { memoryStoreKind as memory } from '../testing/kinds.ts';
import { checkStoreModel } from '../testing/model.ts';

describe('the contract on memory', () => {
  for (const one of storeContract) {
    test.skipIf(findSkipReason(memory, one))(`${one.title}`, () => runContractCase(memory, one));
  }
});

test('the contract has at least 120 cases, each with its own title', () => {
  const titles = new Set(storeContract.map(({ title }) => title));
  expect(titles.size).toBe(storeContract.length);
  expect(titles.size).toBeGreaterThanOrEqual(120);
});

test('a thousand random histories agree with the model', () => checkStoreModel(fc, memory, { runs: 1_000 }));
