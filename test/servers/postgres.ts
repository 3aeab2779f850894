// A real PostgreSQL on a free loopback port, in a temporary folder: Debian's, or a newer one of newer-postgres.ts.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from './free-port.ts';

const run = promisify(execFile);
const READY_MS = 30_000;
const ACCOUNT = 'postgres';

export interface PostgresServer extends AsyncDisposable {
  readonly url: string;
  /** The postmaster; its children do the work. */
  readonly pid: number;
  /** Stops it as a power cut would (`immediate`) or as its operator would (`fast`), and starts it on the same data. */
  restart(mode: 'immediate' | 'fast'): Promise<void>;
  /** Ends every process of the server at once, as a machine does that loses its power. */
  kill(): Promise<void>;
  /** Freezes every process of the server. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** User and system time of every process of the server so far, in milliseconds. */
  cpuMs(): Promise<number>;
}

export interface PostgresServerOptions {
  /** Flushes to disk, as a real one does; without it tests are faster. */
  readonly durable?: boolean;
  readonly settings?: Readonly<Record<string, string>>;
  readonly env?: NodeJS.ProcessEnv;
  /** Follows this server, and answers questions only. */
  readonly standbyOf?: string;
  /** The folder of another version's `initdb` and `postgres`. */
  readonly binaries?: string;
}

export async function startPostgres(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-postgres-'));
  const data = join(folder, 'data');
  const tools = findBinaries();
  const binaries = options.binaries ?? tools;
  const account = process.getuid?.() === 0 ? await readAccount(ACCOUNT) : undefined;
  if (account !== undefined) chownSync(folder, account.uid, account.gid);
  const port = await freePort();
  const [program, ...mode] =
    options.standbyOf === undefined
      ? ['initdb', '-A', 'trust', '-U', ACCOUNT, '-E', 'UTF8', '--locale=C']
      : ['pg_basebackup', '-d', options.standbyOf, '-R', '--checkpoint=fast'];
  await run(join(binaries, program!), ['-D', data, '--no-sync', ...mode], { ...account, cwd: folder });
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    port: `${port}`,
    fsync: options.durable === true ? 'on' : 'off',
    max_connections: '200',
    log_min_messages: 'panic',
    ...options.settings,
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const start = async (): Promise<ChildProcess> => {
    const child = spawn(join(binaries, 'postgres'), ['-D', data, ...args], {
      ...account,
      cwd: folder,
      env: options.env,
      stdio: 'ignore',
    });
    await ready(child, { tools, port });
    return child;
  };
  let server = await start();
  const signal = async (name: NodeJS.Signals): Promise<void> => {
    for (const pid of await findFamily(server.pid!)) send(pid, name);
  };
  const stop = async (name: NodeJS.Signals): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill(name);
    await ended;
  };
  return {
    url: `postgres://${ACCOUNT}@127.0.0.1:${port}/postgres`,
    get pid() {
      return server.pid!;
    },
    async restart(mode) {
      await stop(mode === 'immediate' ? 'SIGQUIT' : 'SIGINT');
      server = await start();
    },
    async kill() {
      await signal('SIGKILL');
      await stop('SIGKILL');
    },
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    cpuMs: async () => readCpuMs(await findFamily(server.pid!)),
    async [Symbol.asyncDispose]() {
      await signal('SIGCONT');
      await stop('SIGQUIT');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** One of its processes may have ended since it was counted. */
function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as { code?: string }).code !== 'ESRCH') throw error;
  }
}

function findBinaries(): string {
  const root = '/usr/lib/postgresql';
  const versions = existsSync(root) ? readdirSync(root).toSorted((a, b) => Number(b) - Number(a)) : [];
  const found = versions
    .map((version) => join(root, version, 'bin'))
    .find((path) => existsSync(join(path, 'postgres')));
  if (found === undefined) throw new Error('PostgreSQL is not installed: apt-get install postgresql-15');
  return found;
}

/** It refuses to run as root. */
export async function readAccount(name: string): Promise<{ uid: number; gid: number }> {
  const [uid, gid] = await Promise.all(
    ['-u', '-g'].map(async (what) => Number((await run('id', [what, name])).stdout)),
  );
  return { uid: uid!, gid: gid! };
}

async function ready(child: ChildProcess, { tools, port }: { tools: string; port: number }): Promise<void> {
  const until = performance.now() + READY_MS;
  while (performance.now() < until) {
    if (child.exitCode !== null) throw new Error(`postgres ended with ${child.exitCode} instead of starting`);
    try {
      await run(join(tools, 'pg_isready'), ['-q', '-h', '127.0.0.1', '-p', `${port}`]);
      return;
    } catch {
      await wait(30);
    }
  }
  child.kill('SIGQUIT');
  throw new Error(`postgres was not ready within ${READY_MS} ms`);
}

async function findFamily(pid: number): Promise<number[]> {
  // It fails if there are none: the server has ended.
  const { stdout } = await run('ps', ['-o', 'pid=', '--ppid', `${pid}`]).catch(() => ({ stdout: '' }));
  return [pid, ...(stdout.match(/\d+/g) ?? []).map(Number)];
}

/** Ticks of every process, including those that the postmaster has reaped. */
async function readCpuMs([postmaster, ...workers]: readonly number[]): Promise<number> {
  const ticks = await Promise.all([
    readTicks(postmaster!, 'and its children'),
    ...workers.map((pid) => readTicks(pid, 'alone').catch(() => 0)),
  ]);
  return ticks.reduce((sum, one) => sum + one, 0) * MS_PER_TICK;
}

const MS_PER_TICK = 10;

async function readTicks(pid: number, who: 'alone' | 'and its children'): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // Skip the name, which may contain anything: utime, stime, cutime, cstime.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const wanted = fields.slice(11, who === 'alone' ? 13 : 15);
  return wanted.reduce((sum, one) => sum + Number(one), 0);
}
