// Debian's haproxy in front of servers: without retries, and with their readiness checks.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../servers/free-port.ts';

const PROGRAM = ['/usr/sbin/haproxy', '/usr/local/sbin/haproxy'].find((path) => existsSync(path));
const POLL_INTERVAL_MS = 50;
const MAX_ATTEMPTS = 100;

export const missingHaproxy = PROGRAM === undefined ? 'haproxy is not installed (apt-get install haproxy)' : undefined;

/** haproxy's counters for a server. */
interface ProxiedServer {
  readonly status: string;
  /**
   * Connections that failed, requests that were repeated, and requests sent to another server. Clients check cut
   * streams.
   */
  readonly failures: number;
}

export interface Proxy extends AsyncDisposable {
  readonly url: string;
  readonly read: () => Promise<Readonly<Record<string, ProxiedServer>>>;
  /** Waits until the server at this port has a status: UP or DOWN. */
  waitFor(port: number, status: 'UP' | 'DOWN'): Promise<void>;
}

/** Starts haproxy with a server at each of the ports; they need not listen yet. */
export async function startHaproxy(ports: readonly number[]): Promise<Proxy> {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-haproxy-'));
  const port = await freePort();
  const socket = join(folder, 'stats');
  writeFileSync(join(folder, 'haproxy.cfg'), toConfiguration({ port, socket, ports }));
  const child = spawn(PROGRAM!, ['-f', join(folder, 'haproxy.cfg'), '-db'], { stdio: ['ignore', 'ignore', 'inherit'] });
  const ended = once(child, 'exit');
  const read: Proxy['read'] = async () => toServers(await ask(socket, 'show stat servers 4 -1'));
  const until = async (isSo: () => Promise<boolean>): Promise<void> => {
    while (!(await isSo())) {
      if (child.exitCode !== null) throw new Error(`haproxy ended with ${child.exitCode}`);
      await wait(POLL_INTERVAL_MS);
    }
  };
  await until(() => Promise.resolve(existsSync(socket)));
  return {
    url: `http://127.0.0.1:${port}`,
    read,
    waitFor: (server, status) => until(async () => (await read())[`s${server}`]?.status === status),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

function toConfiguration({ port, socket, ports }: { port: number; socket: string; ports: readonly number[] }): string {
  return `global
  maxconn 4000
  stats socket ${socket}
  stats timeout 10m
defaults
  mode http
  retries 0
  timeout connect 60s
  # On a busy machine a server that is slow is not one that is not ready.
  timeout check 60s
  timeout http-keep-alive 30s
  timeout client 300s
  timeout server 300s
frontend whoa
  bind 127.0.0.1:${port}
  # It is about the connection to the server: clients would keep theirs for as long.
  http-response del-header Keep-Alive
  default_backend servers
backend servers
  balance leastconn
  option httpchk GET /readyz
  http-check expect status 200
  default-server check inter 500ms fall 2 rise 1 init-addr none
${ports.map((one) => `  server s${one} 127.0.0.1:${one}\n`).join('')}`;
}

/** haproxy closes the connection after its answer, and on a busy machine before the question. */
async function ask(path: string, command: string, attempts = MAX_ATTEMPTS): Promise<string> {
  const socket = connect(path);
  socket.write(`${command}\n`);
  try {
    return await text(socket);
  } catch (error) {
    if (attempts <= 1) throw error;
    await wait(POLL_INTERVAL_MS);
    return ask(path, command, attempts - 1);
  }
}

function toServers(csv: string): Record<string, ProxiedServer> {
  const [head = '', ...lines] = csv.trim().split('\n');
  const names = head.replace(/^# /, '').split(',');
  const rows = lines.map((line) => Object.fromEntries(line.split(',').map((value, i) => [names[i]!, value])));
  return Object.fromEntries(
    rows.map((row) => {
      const failures = ['econ', 'wretr', 'wredis'].reduce((sum, name) => sum + Number(row[name]), 0);
      return [row['svname']!, { status: row['status']!.split(' ')[0]!, failures }];
    }),
  );
}
