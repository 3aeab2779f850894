import { expect, test, vi } from 'vitest';
import { createTaskStore, StoreSetupError } from '../index.ts';

vi.mock('pg', () => Promise.reject(new Error("Cannot find package 'pg'")));

test('a Postgres store without its driver fails with what to install', async () => {
  await using store = createTaskStore('postgres://127.0.0.1:1/none');
  const error = await store.get({ tenant: 'acme', id: 'none' }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(StoreSetupError);
  expect((error as Error).message).toContain('npm install pg');
});
