import { sqliteStoreKind } from '@whoa/tasks/testing';
import { test } from 'vitest';
import { expectContract, expectModel } from './expect-contract.ts';

test('the SQLite store keeps the whole contract', () => expectContract(sqliteStoreKind));

test('the SQLite store agrees with the model in 300 random histories', () => expectModel(sqliteStoreKind, 300));
