import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { createTaskStore } from '@whoa/tasks';
import { report } from '../measure/measure.ts';
import type { BenchCase } from '../stores/bare.ts';
import { createWaiting } from '../stores/worker.ts';
import { BENCH, Server, type Usage } from './process.ts';

const STREAMS = 5_000;
/** How many connections are opened at the same time. */
const CONNECTING = 50;
/** How long streams are held while their cost is measured. */
const HELD_MS = 10_000;

/** Streams that are held open by one process, with the memory of each. */
export async function measureStreams({ name, config }: BenchCase): Promise<void> {
  await using store = createTaskStore(config);
  const ids = await createWaiting(store, STREAMS);
  const figures: Record<string, Usage & { readonly openMs: number }> = {};
  for (const what of ['bare', 'ours'] as const) {
    await using server = await Server.start(what, config);
    const before = await server.usage();
    const from = performance.now();
    const sockets = await openAll(server.port, ids);
    const openMs = performance.now() - from;
    const opened = await server.usage();
    await wait(HELD_MS);
    const held = await server.usage();
    figures[what] = {
      rss: held.rss - before.rss,
      heapUsed: held.heapUsed - before.heapUsed,
      cpuMs: held.cpuMs - opened.cpuMs,
      openMs,
    };
    for (const socket of sockets) socket.destroy();
  }
  const kilobytes = (bytes: number): number => bytes / 1_024 / STREAMS;
  const { ours, bare } = figures as Record<'ours' | 'bare', Usage & { readonly openMs: number }>;
  report({
    name: `server ${STREAMS} streams ${name}, memory of each beside a bare handler`,
    ours: kilobytes(ours.rss),
    bare: kilobytes(bare.rss),
    goal: { atMost: 3 },
    more: {
      unit: 'KB',
      heapKB: Number(kilobytes(ours.heapUsed).toPrecision(3)),
      bareHeapKB: Number(kilobytes(bare.heapUsed).toPrecision(3)),
      coresWhileHeld: Number((ours.cpuMs / HELD_MS).toPrecision(2)),
      openMs: Math.round(ours.openMs),
      bareOpenMs: Math.round(bare.openMs),
    },
  });
}

/** Opens a stream for each, and resolves when all have started. */
async function openAll(port: number, ids: readonly string[]): Promise<Socket[]> {
  const sockets: Socket[] = [];
  let next = 0;
  const open = async (): Promise<void> => {
    while (next < ids.length) {
      const id = ids[next++]!;
      const socket = connect(port, '127.0.0.1');
      sockets.push(socket);
      socket.write(
        `GET /v1/tasks/${id}/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${BENCH.token}\r\n\r\n`,
      );
      const [first] = (await once(socket, 'data')) as [Buffer];
      if (!first.toString().startsWith('HTTP/1.1 200')) throw new Error(first.toString());
      socket.resume();
    }
  };
  await Promise.all(Array.from({ length: CONNECTING }, open));
  return sockets;
}
