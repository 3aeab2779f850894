import { memoryStoreKind } from '@whoa/tasks/testing';
import { test } from 'vitest';
import { expectContract, expectModel } from './expect-contract.ts';

test('the memory store keeps the whole contract', () => expectContract(memoryStoreKind));

test('the memory store agrees with the model in 5,000 random histories', () => expectModel(memoryStoreKind, 5_000));
