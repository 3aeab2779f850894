import { sqliteStoreKind } from '@whoa/tasks/testing';
import { test } from 'vitest';
import { expectContract, expectModel, NOTIFICATIONS } from './expect-contract.ts';
import { withLossyBus } from './lossy-kind.ts';

test('the SQLite store keeps the whole contract', () => expectContract(sqliteStoreKind));

test('the SQLite store agrees with the model in 300 random histories', () => expectModel(sqliteStoreKind, 300));

// `npm run long -- buses` runs every case.
test.each(['gaps', 'disorders'] as const)('with a bus that %s, notifications keep the contract', (faults) =>
  expectContract(withLossyBus(sqliteStoreKind, faults), NOTIFICATIONS),
);
