// The watchdog: one small process per host, in a session of its own. It reads from its standard input who runs; when that
// ends, the host is gone, however it went, and everything of it is ended.
import { constants, setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import type { HostRecord } from './host-directory.ts';
import { Scope } from './identity/scope.ts';
import { tidyUpAfter } from './leftovers.ts';
import { Sweeper } from './sweeper.ts';

/** Runs the watchdog in this process. It resolves when the host is gone and everything of it too. */
async function watch(): Promise<void> {
  raisePriority();
  // It outlives what ends the host.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
  const roots = new Map<number, number>();
  let directory: { folder: string; record: HostRecord } | undefined;
  for await (const line of createInterface({ input: process.stdin })) {
    if (directory === undefined) {
      directory = JSON.parse(line) as { folder: string; record: HostRecord };
      await warmUp(directory.record);
      continue;
    }
    const [, sign, pid, startTime] = /^([+-])(\d+) (\d+)$/.exec(line) ?? [];
    if (sign === '+') roots.set(Number(pid), Number(startTime));
    else roots.delete(Number(pid));
  }
  const left = [...roots].map(([pid, startTime]) => ({ pid, startTime }));
  if (directory !== undefined) await tidyUpAfter(directory, left);
}

/** On a busy machine it should not wait for its turn. Only root may ask for that; others do without. */
function raisePriority(): void {
  try {
    setPriority(constants.priority.PRIORITY_HIGH);
  } catch {
    // Not allowed here.
  }
}

/** The first look is slow: better now than when it matters. */
async function warmUp({ born }: HostRecord): Promise<void> {
  const nobody = new Scope('nobody', { roots: [], since: Infinity, born: { ...born, last: 1 } });
  const sweeper = new Sweeper();
  sweeper.add(nobody);
  await sweeper.end(nobody, { graceMs: 0 });
}

await watch();
process.exit(0);
