import { setTimeout as wait } from 'node:timers/promises';
import { createRedisStore } from '@whoa/tasks/internal';
import { expect, test } from 'vitest';
import { startRedis } from '../servers/redis.ts';
import { Ledger } from './ledger.ts';

/**
 * While a flush to the disk is slow, Redis responds up to 2 s before it has written, so even a kill can lose those
 * writes.
 */
const POSTPONED_MS = 2_000;
/** Between the server's write and when this process read the clock. */
const SLACK_MS = 500;

// Killing a process cannot show what a power cut loses: the operating system still has the written data.
test.each(['always', 'everysec'] as const)(
  'a server with appendfsync %s, killed, restarted and suspended for 5 s under load, keeps acknowledged writes',
  async (appendfsync) => {
    await using server = await startRedis({ appendfsync });
    await using store = createRedisStore({ url: server.url, timeoutMs: 2_000 });
    const ledger = new Ledger();
    const working = ledger.work(store, 8);
    const workedOn = async (): Promise<void> => {
      const goal = ledger.acknowledged + 1_000;
      await expect.poll(() => ledger.acknowledged, { timeout: 20_000 }).toBeGreaterThan(goal);
    };
    const killedAt: number[] = [];
    for (const signal of ['SIGKILL', 'SIGTERM', 'SIGKILL'] as const) {
      await workedOn();
      if (signal === 'SIGKILL') killedAt.push(performance.now());
      await server.kill(signal);
      await server.start();
    }
    await workedOn();
    server.process.kill('SIGSTOP');
    await wait(5_000);
    server.process.kill('SIGCONT');
    await workedOn();
    ledger.stop();
    await working;
    const isUnsafe = (at: number): boolean =>
      appendfsync === 'everysec' &&
      killedAt.some((killed) => at <= killed + SLACK_MS && at > killed - POSTPONED_MS - SLACK_MS);
    const report = await ledger.judge(store, isUnsafe);
    console.log(appendfsync, report);
    expect(report.lost).toBe(0);
    expect(report.unknown).toBeGreaterThan(0);
  },
);
