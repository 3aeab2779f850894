// A cancel over HTTP until the token fires in a worker, three processes: beside a bare handler that asks the store for the same, in
// turns. Then streams that are held open by one process, with the memory of each:
// npm run bench -- server [cancels] [streams] [redis] [postgres] [--json]
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createToken } from '@whoa/server';
import { createTaskStore } from '@whoa/tasks';
import { percentile, report } from './measure/measure.ts';
import type { BenchCase } from './stores/bare.ts';
import { cases } from './stores/cases.ts';
import { createWaiting } from './stores/worker.ts';

const SAMPLES = 500;
const WARM_UP = 50;
const STREAMS = 5_000;
/** How many connections are made at once. */
const CONNECTING = 50;
/** How long streams are held while their cost is measured. */
const HELD_MS = 10_000;

interface Usage {
  readonly rss: number;
  readonly heapUsed: number;
  readonly cpuMs: number;
}

const { token, sha256 } = createToken();
const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };

class Server implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly port: number;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  static async start(what: 'ours' | 'bare', config: object): Promise<Server> {
    const script = join(import.meta.dirname, 'children/server.ts');
    const child = fork(script, [what, JSON.stringify(config), sha256], { execArgv: ['--expose-gc', '--no-warnings'] });
    const [{ port }] = (await once(child, 'message')) as [{ port: number }];
    return new Server(child, port);
  }

  async usage(): Promise<Usage> {
    const answer = once(this.#child, 'message') as Promise<[Usage]>;
    this.#child.send('usage');
    return (await answer)[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

const PARTS: Readonly<Record<string, (one: BenchCase) => Promise<void>>> = {
  cancels: measureCancels,
  streams: measureStreams,
};
const named = Object.keys(PARTS).filter((name) => process.argv.includes(name));
const parts = (named.length > 0 ? named : Object.keys(PARTS)).map((name) => PARTS[name]!);

for (const start of cases) {
  await using one = await start();
  for (const measure of parts) await measure(one);
}

async function measureCancels({ name, config }: BenchCase): Promise<void> {
  await using store = createTaskStore(config);
  await using ours = await Server.start('ours', config);
  await using bare = await Server.start('bare', config);
  const worker = fork(join(import.meta.dirname, 'children/cancel.ts'), [JSON.stringify(config)]);
  const waiting = new Map<string, (message: { at: string }) => void>();
  worker.on('message', (message: { type: string; at: string }) => waiting.get(message.type)?.(message));
  const hear = (type: string): Promise<{ at: string }> => new Promise((resolve) => waiting.set(type, resolve));
  await hear('ready');
  /** From the request to the token in the worker. */
  const sample = async (cancel: (id: string) => Promise<unknown>): Promise<number> => {
    const receipt = await store.create({ tenant: 'bench', agent: 'bench', input: 'x', worker: 'bench' });
    if (receipt.answer !== 'created') throw new Error(receipt.answer);
    const working = hear('working');
    worker.send({ id: receipt.task.id });
    await working;
    const [fired, ended] = [hear('fired'), hear('ended')];
    await wait(2);
    const from = process.hrtime.bigint();
    await cancel(receipt.task.id);
    const ms = Number(BigInt((await fired).at) - from) / 1e6;
    await ended;
    return ms;
  };
  const overHttp = (port: number) => async (id: string) => {
    const body = JSON.stringify({ mode: 'now' });
    const response = await fetch(`http://127.0.0.1:${port}/v1/tasks/${id}/cancel`, { method: 'POST', headers, body });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    await response.arrayBuffer();
  };
  const samples: Record<'ours' | 'bare' | 'store', number[]> = { ours: [], bare: [], store: [] };
  for (let i = 0; i < WARM_UP + SAMPLES; i++) {
    samples.ours.push(await sample(overHttp(ours.port)));
    samples.bare.push(await sample(overHttp(bare.port)));
    samples.store.push(await sample((id) => store.cancel({ tenant: 'bench', id }, {}, { how: 'now' })));
  }
  worker.kill();
  for (const [title, share] of [
    ['p50', 0.5],
    ['p95', 0.95],
  ] as const) {
    const of = (all: readonly number[]): number => percentile(all.slice(WARM_UP), share);
    report({
      name: `server cancel ${name} ${title} beside a bare handler on the same store`,
      ours: of(samples.ours),
      bare: of(samples.bare),
      goal: { atMost: 2 },
      more: { unit: 'ms', samples: SAMPLES, storeAloneMs: Number(of(samples.store).toPrecision(3)) },
    });
  }
}

async function measureStreams({ name, config }: BenchCase): Promise<void> {
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

/** Opens a stream for each, and resolves when all have begun. */
async function openAll(port: number, ids: readonly string[]): Promise<Socket[]> {
  const sockets: Socket[] = [];
  let next = 0;
  const open = async (): Promise<void> => {
    while (next < ids.length) {
      const id = ids[next++]!;
      const socket = connect(port, '127.0.0.1');
      sockets.push(socket);
      socket.write(`GET /v1/tasks/${id}/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n\r\n`);
      const [first] = (await once(socket, 'data')) as [Buffer];
      if (!first.toString().startsWith('HTTP/1.1 200')) throw new Error(first.toString());
      socket.resume();
    }
  };
  await Promise.all(Array.from({ length: CONNECTING }, open));
  return sockets;
}
