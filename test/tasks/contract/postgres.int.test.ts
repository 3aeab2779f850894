import type { StoreKind } from '@whoa/tasks/testing';
import { afterAll, beforeAll, test } from 'vitest';
import { borrowPostgres } from '../../servers/borrow.ts';
import { openPostgresKind } from '../../servers/postgres-kind.ts';
import { expectContract, expectModel } from './expect-contract.ts';

const stack = new AsyncDisposableStack();
let kind: StoreKind;
beforeAll(async () => {
  const server = stack.use(await borrowPostgres());
  kind = stack.use(await openPostgresKind(server.url));
});
afterAll(() => stack.disposeAsync());

test('the Postgres store keeps the whole contract', () => expectContract(kind));

test('the Postgres store agrees with the model in 100 random histories', () => expectModel(kind, 100));
