// The watchdog: one small process per host, in its own session. It reads the running commands from standard input. When that
// closes, the host has ended or was killed, and the watchdog ends all its processes.
import { constants, setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import type { HostRecord } from './host-directory.ts';
import { Scope } from './identity/scope.ts';
import { cleanUpAfterHost } from './leftovers.ts';
import { Sweeper } from './sweeper.ts';

/** Runs the watchdog in this process. Resolves when the host and all its processes have ended. */
async function watch(): Promise<void> {
  raisePriority();
  // Ignore signals that end the host.
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
  if (directory !== undefined) await cleanUpAfterHost(directory, left);
}

/** Run soon on a busy machine. Only root may raise the priority. */
function raisePriority(): void {
  try {
    setPriority(constants.priority.PRIORITY_HIGH);
  } catch {
    // Not permitted.
  }
}

/** The first look is slow, so do one now. */
async function warmUp({ born }: HostRecord): Promise<void> {
  const nobody = new Scope('nobody', { roots: [], since: Infinity, born: { ...born, last: 1 } });
  const sweeper = new Sweeper();
  sweeper.add(nobody);
  await sweeper.end(nobody, { graceMs: 0 });
}

await watch();
process.exit(0);
