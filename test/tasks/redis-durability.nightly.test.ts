import { setTimeout as wait } from 'node:timers/promises';
import { createRedisStore } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { startRedis } from '../servers/redis.ts';
import { Ledger } from './ledger.ts';

/** While a flush to the disk takes its time, Redis answers before it has written, for up to 2 s: also a kill takes those. */
const POSTPONED_MS = 2_000;
/** Between what the server did and when this process looked at the clock. */
const SLACK_MS = 500;

// What a power cut takes cannot be shown by killing a process: the system still has what was written.
test.each(['always', 'everysec'] as const)(
  'a server with appendfsync %s, killed, restarted and stopped for 5 s under load, keeps what it has promised',
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
