import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import { ask, startRedis } from './redis.ts';

const SLOTS = 16_384;
const NODES = 3;

/** A Redis Cluster of three masters. */
export async function startRedisCluster(): Promise<AsyncDisposable & { readonly urls: readonly string[] }> {
  const stack = new AsyncDisposableStack();
  const ports: { readonly port: number; readonly bus: number }[] = [];
  for (let i = 0; i < NODES; i++) {
    const bus = await freePort();
    const config = [
      ['cluster-enabled', 'yes'],
      ['cluster-port', `${bus}`],
    ] as const;
    const { port } = stack.use(await startRedis({ appendfsync: 'none', config }));
    const [first, end] = [i, i + 1].map((n) => Math.floor((n * SLOTS) / NODES));
    await ask(port, 'CLUSTER', 'ADDSLOTSRANGE', `${first}`, `${end! - 1}`);
    await ask(port, 'CLUSTER', 'SET-CONFIG-EPOCH', `${i + 1}`);
    ports.push({ port, bus });
  }
  for (const { port, bus } of ports.slice(1))
    await ask(ports[0]!.port, 'CLUSTER', 'MEET', '127.0.0.1', `${port}`, `${bus}`);
  const isReady = async (port: number): Promise<boolean> => {
    const info = await ask(port, 'CLUSTER', 'INFO');
    return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${NODES}`);
  };
  for (const { port } of ports) while (!(await isReady(port))) await wait(20);
  return {
    urls: ports.map(({ port }) => `redis://127.0.0.1:${port}`),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
