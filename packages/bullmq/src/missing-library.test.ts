import { createMemoryStore } from '@whoa/tasks';
import { expect, test, vi } from 'vitest';
import { bullmq } from './index.ts';

vi.mock('bullmq', () => Promise.reject(new Error("Cannot find package 'bullmq'")));

test('an engine without BullMQ reports what to install', async () => {
  await using store = createMemoryStore();
  const open = bullmq({ connection: 'redis://localhost' });
  const opened = open({ store, agents: ['assistant'], onError: () => expect.unreachable() });
  await expect(opened).rejects.toThrow("needs the package 'bullmq'; install it: npm install bullmq ioredis");
});
