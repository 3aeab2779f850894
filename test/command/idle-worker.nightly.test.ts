// Ends several workers at the same time that have been idle for a long time.
import { expect, test } from 'vitest';
import { borrowPostgres } from '../servers/borrow.ts';
import { type RunningCommand, startCommand } from './process.ts';
import { createHome } from './terminal.ts';

const WORKERS = 5;
const ROUNDS = 10;
const IDLE_MS = 60_000;
const EXIT_MS = 8_000;

test(
  `${WORKERS * ROUNDS} workers that were idle for ${IDLE_MS / 1_000} s exit in time when they are stopped together`,
  async ({ onTestFinished }) => {
    await using postgres = await borrowPostgres();
    using home = createHome({
      'config/whoa/whoa.config.ts': `export default { store: { backend: 'postgres', url: '${postgres.url}' } };`,
      'script.json': '[["Hello."]]',
    });
    const owner = { ...home, onEnd: onTestFinished };
    for (let round = 0; round < ROUNDS; round++) {
      const workers: RunningCommand[] = [];
      for (let i = 0; i < WORKERS; i++) {
        const worker = startCommand(owner, ['worker', '--model', 'scripted:script.json']);
        await worker.waitFor({ type: 'working' });
        workers.push(worker);
      }
      // The test is about being idle, so there is nothing else to wait for.
      await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
      const toldAt = performance.now();
      for (const worker of workers) worker.kill('SIGTERM');
      const ends = await Promise.all(workers.map(({ closed }) => closed));
      const errors = workers.map((worker) => worker.errors()).join('');
      expect(ends, errors).toEqual(Array.from({ length: WORKERS }, () => [0, null]));
      expect(performance.now() - toldAt, errors).toBeLessThan(EXIT_MS);
    }
  },
  ROUNDS * (IDLE_MS + 60_000),
);
