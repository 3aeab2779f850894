import { expect, test, vi } from 'vitest';
import { createTaskStore, StoreSetupError } from '../index.ts';

vi.mock('ioredis', () => Promise.reject(new Error("Cannot find package 'ioredis'")));
vi.mock('pg', () => Promise.reject(new Error("Cannot find package 'pg'")));

test.each([
  ['redis', 'ioredis', createTaskStore({ backend: 'redis', url: 'redis://127.0.0.1:1' })],
  ['postgres', 'pg', createTaskStore({ backend: 'postgres', url: 'postgres://127.0.0.1:1/none' })],
] as const)('a %s store without its driver fails with what to install', async (_backend, driver, store) => {
  const error = await store.get({ tenant: 'acme', id: 'none' }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(StoreSetupError);
  expect((error as Error).message).toContain(`npm install ${driver}`);
  await store[Symbol.asyncDispose]();
});
