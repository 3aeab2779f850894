// Real Redis servers on free loopback ports, in temporary folders.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';

interface RedisServerOptions {
  /** When a write is on the disk: immediately, within a second, never. */
  readonly appendfsync?: 'always' | 'everysec' | 'none';
  /** Further lines of configuration: `['maxmemory', '10mb']`. */
  readonly config?: readonly (readonly [string, string])[];
  readonly env?: NodeJS.ProcessEnv;
}

/** One server that can be stopped and started again on the same data. */
export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The process that runs now. */
  readonly process: ChildProcess;
  /** Ends it with a signal, and waits until it has ended. */
  kill(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  start(): Promise<void>;
}

const START_MS = 20_000;

export async function startRedis({
  appendfsync = 'everysec',
  config = [],
  env = process.env,
}: RedisServerOptions = {}): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-redis-'));
  const port = await freePort();
  const persistence =
    appendfsync === 'none' ? ['--appendonly', 'no'] : ['--appendonly', 'yes', '--appendfsync', appendfsync];
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', '', ...persistence];
  for (const [name, value] of config) args.push(`--${name}`, value);
  let child: ChildProcess;
  const start = async (): Promise<void> => {
    child = spawn('redis-server', args, { stdio: 'ignore', env });
    await answers(port, child);
  };
  const kill = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    // A suspended process cannot handle other signals.
    child.kill('SIGCONT');
    await ended;
  };
  const end = async (): Promise<void> => {
    await kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  await start().catch(async (error: unknown) => {
    await end();
    throw error;
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get process() {
      return child;
    },
    kill,
    start,
    [Symbol.asyncDispose]: end,
  };
}

/** Sends a server one command, as an administrator would. */
export async function ask(port: number, ...command: readonly string[]): Promise<string> {
  const client = new Redis(port, '127.0.0.1', { retryStrategy: null, lazyConnect: true });
  client.on('error', () => {});
  try {
    await client.connect();
    return String(await client.call(...(command as [string, ...string[]])));
  } catch (error) {
    return String(error);
  } finally {
    client.disconnect();
  }
}

async function answers(port: number, child: ChildProcess): Promise<void> {
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`redis-server ended with ${child.exitCode} before it answered`);
    return (await ask(port, 'PING')) === 'PONG';
  });
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + START_MS;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`servers were not ready within ${START_MS} ms`);
    await wait(20);
  }
}
