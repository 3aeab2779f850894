// A small process next to a worker. The worker writes to it as long as its event loop turns. A worker that has been silent for
// too long is killed, so that its lease ends and another worker takes its tasks over.
const [pid, maxQuietTicks, tickMs] = process.argv.slice(2).map(Number) as [number, number, number];
let quietTicks = 0;

// A signal that ends the worker must not end this process first.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
process.stdin.on('data', () => (quietTicks = 0));
// The worker has exited or was killed.
process.stdin.on('end', () => process.exit(0));
// Count our own ticks, not time: they stop too while the whole machine is suspended.
setInterval(() => {
  if (++quietTicks < maxQuietTicks) return;
  process.stderr.write(`whoa: killing worker ${pid}: its event loop was blocked for ${quietTicks * tickMs} ms\n`);
  process.kill(pid, 'SIGKILL');
  process.exit(1);
}, tickMs);
