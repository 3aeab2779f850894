import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, realpathSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { forChange } from '../night.ts';
import { findMarked } from '../process-escapes/round.ts';
import { createWorkspace, type Workspace } from '../workspace.ts';
import { ATTEMPTS, type Attempt, WRITE_ATTEMPTS } from './attempts.ts';
import { giveTo, runInside, USERS } from './inside.ts';

const SECRET = 'SECRET-of-the-host-41f0';
const MARK = `305.${process.pid}`;

/** `sys NAME X64 ARM64 ARGUMENTS`: makes a system call, and prints ESCAPED if it works. */
const SYS = `sys() { perl -MPOSIX -e '
  $number = (POSIX::uname())[4] eq "aarch64" ? $ARGV[2] : $ARGV[1];
  @arguments = map { /^0x/ ? hex : /^-?\\d+$/ ? 0 + $_ : $_ } @ARGV[3 .. $#ARGV];
  print "ESCAPED" if syscall(0 + $number, @arguments) >= 0' "$@" 2>/dev/null; }`;

/** The name of the folder in /tmp that has Node, which commands may read. Empty if Node is elsewhere. */
function nodeInTemp(): string {
  const [name = ''] = relative('/tmp', realpathSync(process.execPath)).split(sep);
  return name === '..' ? '' : name;
}

/** The outside: a secret, a process, sockets. Nothing inside may touch any of it. */
class Outside implements AsyncDisposable {
  readonly location: Workspace = createWorkspace({
    'outside/secret': SECRET,
    'ws/a.txt': 'a\n',
    'ws/.git/config': '[core]\n',
    'ws/.git/hooks/existing': '#!/bin/sh\n',
  });
  readonly process = spawn('sleep', ['1000'], { env: { PATH: process.env['PATH'], KEY: SECRET } });
  readonly leak = openSync(this.location.at('outside/secret'), 'r');
  heard = 0;
  readonly #servers: Server[] = [];
  readonly #datagrams = createSocket('udp4', () => this.heard++);
  env: Record<string, string> = {};

  async open(user: string): Promise<void> {
    const listen = (where: object): Promise<Server> =>
      new Promise((resolve) => {
        const server = createServer((socket) => {
          this.heard++;
          socket.destroy();
        });
        this.#servers.push(server.listen(where, () => resolve(server)));
      });
    const tcp = await listen({ port: 0, host: '127.0.0.1' });
    const { port } = tcp.address() as { port: number };
    await listen({ path: this.location.at('outside/socket') });
    await listen({ path: `\0whoa-test-${process.pid}` });
    await new Promise<void>((resolve) => this.#datagrams.bind(port, '127.0.0.1', resolve));
    const names = ['.', 'ws', ...this.location.list().filter((name) => name.startsWith('ws/'))];
    giveTo(user, this.location, names);
    this.env = {
      PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
      OUT: this.location.at('outside'),
      HOST_PID: `${this.process.pid}`,
      HOST_HOME: process.env['HOME'] ?? '/root',
      PORT: `${port}`,
      SOCKET: this.location.at('outside/socket'),
      ABSTRACT: `whoa-test-${process.pid}`,
      PROGRAMS: nodeInTemp(),
      MARK,
    };
  }

  /** Its current state. */
  get state(): unknown {
    return {
      files: this.location.list().filter((name) => !/^ws\/.*(disk|memory|stolen)/.test(name)),
      secret: this.location.read('outside/secret'),
      config: this.location.read('ws/.git/config'),
      hook: this.location.read('ws/.git/hooks/existing'),
      process: this.process.exitCode ?? this.process.signalCode,
      heard: this.heard,
      hostname: hostname(),
      marked: findMarked(MARK),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await exited;
    closeSync(this.leak);
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))));
    await new Promise<void>((resolve) => this.#datagrams.close(resolve));
    this.location[Symbol.dispose]();
  }
}

const folder = mkdtempSync(join(tmpdir(), `whoa-test-${process.pid}-folder-`));
beforeAll(() => {
  process.env['HOST_KEY'] = SECRET;
});
afterAll(() => {
  delete process.env['HOST_KEY'];
  rmSync(folder, { recursive: true });
});

interface Inside {
  readonly outside: Outside;
  readonly kind: 'workspace' | 'read-only';
  readonly user: string;
}

function tryInside(script: string, { outside, kind, user }: Inside): Promise<string> {
  const sandbox = { kind, workspace: outside.location.at('ws') };
  return runInside(`${SYS}\n${script}`, { sandbox, env: outside.env, user, folder });
}

const CASES = USERS.flatMap((user) => [
  { kind: 'workspace' as const, user, attempts: ATTEMPTS },
  { kind: 'read-only' as const, user, attempts: WRITE_ATTEMPTS },
]);

/** For every change: each way once, each kind and each user. */
const [FIRST, LAST] = [CASES[0]!, CASES.at(-1)!];
const chosen = forChange(
  CASES,
  ({ kind, user }) => (kind === FIRST.kind) === (user === LAST.user) || USERS.length === 1,
);

describe.each(chosen)('the sandbox $kind as $user', ({ kind, user, attempts }) => {
  let outside: Outside;
  beforeAll(async () => {
    outside = new Outside();
    await outside.open(user);
  });
  afterAll(() => outside[Symbol.asyncDispose]());

  test('works at all: commands run, read the workspace and have a temporary folder', async () => {
    const said = await tryInside('cat a.txt; touch /tmp/mine ~/mine && echo kept', { outside, kind, user });
    expect(said).toBe('a\nkept\n\n[0]');
    const write = await tryInside('echo x > b.txt && echo written', { outside, kind, user });
    expect(write).toContain(kind === 'workspace' ? 'written' : 'Read-only file system');
    rmSync(outside.location.at('ws/b.txt'), { force: true });
  });

  const fitting = attempts.filter(({ isForUsers = false }) => !(isForUsers && user === 'root'));
  test.each(fitting)('refuses to $name', async ({ script }: Attempt) => {
    const before = outside.state;
    const said = await tryInside(script, { outside, kind, user });
    expect(said).not.toContain('ESCAPED');
    expect(said).not.toContain(SECRET);
    // Processes inside end with the namespace, a moment after its first process.
    await expect.poll(() => outside.state).toEqual(before);
  });
});

test('there are at least sixty ways out, each with its own name', () => {
  expect(new Set(ATTEMPTS.map(({ name }) => name)).size).toBe(ATTEMPTS.length);
  expect(ATTEMPTS.length).toBeGreaterThanOrEqual(60);
});
