// Checks the claims of the page on queues: the same agent with the same faults, on a real Redis and a real Postgres.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { ROOT, read } from '../docs/pages.ts';
import { borrowPostgres, borrowRedis } from '../servers/borrow.ts';

test('a queue and a task store, through five faults', async () => {
  await using redis = await borrowRedis();
  await using postgres = await borrowPostgres();
  const args = ['--conditions=@whoa/source', join(ROOT, 'examples/engines/why.ts'), redis.url, postgres.url];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { timeout: 160_000 });
  expect(stderr).toBe('');
  const [bullmq, whoa] = stdout.split('\n\n').map((part) =>
    part
      .split('\n')
      .slice(1, 6)
      .map((line) => line.slice(45)),
  );
  // How many depends on the machine.
  expect(bullmq!.map((line) => line.replace(/^\d+ callers/, 'N callers'))).toEqual([
    'the caller hears "sent to 2 workers"; it stopped, as "failed: cancelled"',
    'the older one ends as "completed"; booked: Rome later and Paris',
    expect.stringMatching(/N callers did not hear that it was too late|every caller knows which came first/),
    'booked 2 times; "completed": Your table is booked.',
    'booked 2 times; "completed": Your table is booked.',
  ]);
  const unknown = 'booked once; "success": I do not know whether it is booked: please check.';
  expect(whoa).toEqual([
    'the caller hears "accepted"; it stopped, as "cancelled"',
    'the older one ends as "cancelled"; booked: Paris',
    'every caller knows which came first',
    unknown,
    unknown,
  ]);
  for (const line of whoa!) expect(read('docs/concepts/why-not-a-queue.md')).toContain(line);
}, 180_000);
