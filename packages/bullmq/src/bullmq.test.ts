import { expect, test } from 'vitest';
import { bullmq } from './bullmq.ts';

const connection = 'redis://localhost:6379';

test('options that BullMQ understands are accepted', () => {
  for (const options of [
    { connection },
    { connection: 'rediss://user:secret@queue.internal:6380/2' },
    { connection: { host: 'localhost', port: 6379 }, queue: 'agents', prefix: 'jobs', order: 'jobs' },
    { connection, limiter: { max: 10, duration: 1_000 }, worker: { lockDuration: 30_000 } },
    { connection, limiter: undefined },
  ]) {
    expect(bullmq(options as Parameters<typeof bullmq>[0])).toBeTypeOf('function');
  }
});

test.each<[unknown, string]>([
  [undefined, 'bullmq: expected an object with connection, queue, prefix, limiter, order, worker'],
  [{}, "bullmq.connection: expected 'redis://host:6379', or connection options of BullMQ such as { host, port }"],
  [{ connection: '' }, "bullmq.connection: expected 'redis://host:6379'"],
  [{ connection: [] }, "bullmq.connection: expected 'redis://host:6379'"],
  [{ connection: 'redis://' }, "bullmq.connection: expected 'redis://host:6379'"],
  [{ connection: 'postgres://localhost' }, "bullmq.connection: expected 'redis://host:6379'"],
  [{ connection, queue: 'a:b' }, 'bullmq.queue: expected a name without colons'],
  [{ connection, queue: '' }, 'bullmq.queue: expected a name without colons'],
  [{ connection, prefix: 7 }, 'bullmq.prefix: expected a non-empty string'],
  [{ connection, limiter: 10 }, 'bullmq.limiter: expected an object with max, duration'],
  [{ connection, limiter: { max: 0, duration: 1 } }, 'bullmq.limiter.max: expected a whole number from 1'],
  [{ connection, limiter: { max: 5 } }, 'bullmq.limiter.duration: expected more than 0 to 86400000 ms, got undefined'],
  [{ connection, limiter: { max: 5, per: 1 } }, 'bullmq.limiter.per: unknown setting; the settings are max, duration'],
  [{ connection, order: 'fifo' }, "bullmq.order: expected 'tenants' or 'jobs'"],
  [{ connection, rate: 5 }, 'bullmq.rate: unknown setting; the settings are connection, queue'],
  [{ connection, worker: 3 }, "bullmq.worker: expected an object with options of BullMQ's worker"],
  [{ connection, worker: { concurrency: 3 } }, 'bullmq.worker.concurrency: not allowed here; use --concurrency'],
  [{ connection, worker: { limiter: {} } }, 'bullmq.worker.limiter: not allowed here; write it next to worker'],
])('%j is rejected with what to write', (options, message) => {
  expect(() => bullmq(options as Parameters<typeof bullmq>[0])).toThrow(message);
});
