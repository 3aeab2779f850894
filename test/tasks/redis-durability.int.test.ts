import { setTimeout as wait } from 'node:timers/promises';
import { createRedisStore } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { startRedis } from '../servers/redis.ts';
import { Ledger } from './ledger.ts';

// What a power cut takes with 'everysec' cannot be shown by killing a process: the system still has what it was given.
test.each(['always', 'everysec'] as const)(
  'a server with appendfsync %s, killed, restarted and stopped for 5 s under load, keeps every operation it has acknowledged',
  async (appendfsync) => {
    await using server = await startRedis({ appendfsync });
    await using store = createRedisStore({ url: server.url, timeoutMs: 2_000 });
    const ledger = new Ledger();
    const working = ledger.work(store, 8);
    const workedOn = async (): Promise<void> => {
      const goal = ledger.acknowledged + 1_000;
      await expect.poll(() => ledger.acknowledged, { timeout: 20_000 }).toBeGreaterThan(goal);
    };
    for (const signal of ['SIGKILL', 'SIGTERM', 'SIGKILL'] as const) {
      await workedOn();
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
    const report = await ledger.judge(store);
    console.log(appendfsync, report);
    expect(report.lost).toBe(0);
    expect(report.unknown).toBeGreaterThan(0);
  },
);
