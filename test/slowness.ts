// Bounds in seconds are for a machine that does nothing else.

const WORK_MS = 20;

/** How many times longer than alone a process takes just now: the time of a little work by its CPU time, at least 1. */
export function measureSlowness(): number {
  const startedAt = performance.now();
  const before = process.cpuUsage();
  for (;;) {
    const { user, system } = process.cpuUsage(before);
    const cpuMs = (user + system) / 1_000;
    if (cpuMs >= WORK_MS) return Math.max(1, (performance.now() - startedAt) / cpuMs);
  }
}
