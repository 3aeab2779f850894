// Lets tasks live one after the other, several at once, and says how long operations took.
import { randomUUID } from 'node:crypto';
import { openStore } from '../../tasks/open-store.ts';

const AT_ONCE = 2;
const store = openStore(process.argv[2]!);
let tookMs: number[] = [];

async function timed<T>(operation: () => Promise<T>): Promise<T> {
  const started = performance.now();
  try {
    return await operation();
  } finally {
    tookMs.push(performance.now() - started);
  }
}

async function live(worker: string): Promise<void> {
  for (;;) {
    const session = { session: randomUUID(), claim: randomUUID(), worker, leaseMs: 60_000 };
    const created = await timed(() => store.create({ tenant: 'load', agent: 'load', input: 'x' }));
    if (created.answer !== 'created') throw new Error(created.answer);
    const claimed = await timed(() => store.claim(created.task.id, session));
    if (claimed.answer !== 'claimed') throw new Error(claimed.answer);
    await timed(() => store.append(claimed.claim, { after: 0, events: [{ type: 'step' }] }));
    await timed(() => store.cancel(created.task));
    await timed(() => store.finish(claimed.claim, { status: 'cancelled' }));
  }
}

process.on('message', () => {
  const sorted = tookMs.toSorted((a, b) => a - b);
  tookMs = [];
  const at = (share: number): number => Math.round(sorted[Math.floor((sorted.length - 1) * share)]! * 10) / 10;
  process.send?.({ operations: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) });
});
process.on('disconnect', () => process.exit());
await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => live(`load-${i}`)));
