// One small process beside a worker. It hears from the worker each time its event loop turns; a worker that has been
// silent for too long is killed, so that its lease ends and another takes its tasks over.
const [pid, maxQuietTicks, tickMs] = process.argv.slice(2).map(Number) as [number, number, number];
let quietTicks = 0;

// What ends the worker must not end this first.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
process.stdin.on('data', () => (quietTicks = 0));
// The worker has gone, however it went.
process.stdin.on('end', () => process.exit(0));
// Its own turns are counted, not time: when the whole machine was stopped, so were they.
setInterval(() => {
  if (++quietTicks < maxQuietTicks) return;
  process.stderr.write(`whoa: worker ${pid} is killed: its event loop has not turned for ${quietTicks * tickMs} ms\n`);
  process.kill(pid, 'SIGKILL');
  process.exit(1);
}, tickMs);
