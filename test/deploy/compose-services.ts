// The servers and workers of compose.yaml in containers, with the commands, rights and limits of the file, on a network of
// a separate namespace. The file's databases are the test's own servers: they have the names of the services there.
import { execFile, execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { interpolate, readCompose, type Service } from './deployment.ts';
import { IMAGE, PODMAN, RUN } from './image.ts';

const execute = promisify(execFile);
const ip = (...args: string[]): unknown => execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'inherit'] });
const HUB = '10.77.0.1';

/** A started container of a service. */
interface Container {
  readonly name: string;
  readonly address: string;
  /** Resolves with its exit code. */
  readonly ended: Promise<number | null>;
  /** Runs a program in it. Resolves with the exit code and the output. */
  run(...command: string[]): Promise<{ readonly code: number; readonly output: string }>;
  /** Resolves when the service's own health check succeeds; rejects if it ends before that. */
  healthy(): Promise<void>;
  /** Stops it as compose does: SIGTERM, and SIGKILL after its grace period. */
  stop(): Promise<void>;
}

interface Services extends AsyncDisposable {
  readonly servers: readonly Container[];
  readonly workers: readonly Container[];
  /** Sends a request to a server of this network. */
  readonly request: (url: string, init?: { method?: string; headers?: object; body?: string }) => Promise<Response>;
}

interface Response {
  readonly status: number;
  readonly body: string;
}

interface Options {
  /** The variables that the file reads. */
  readonly env: Readonly<Record<string, string>>;
  /** Ports of this machine's loopback, by the port at which containers find them at each of these names. */
  readonly names: readonly string[];
  readonly ports: Readonly<Record<number, number>>;
}

/** Starts as many containers of both services as the file says. */
export async function startServices({ env, names, ports }: Options): Promise<Services> {
  const stack = new AsyncDisposableStack();
  try {
    const network = stack.use(await openNetwork(ports));
    const { services } = readCompose();
    const start = (kind: 'server' | 'worker'): Container[] =>
      Array.from({ length: services[kind].deploy!.replicas }, (_, i) => {
        const member = network.join();
        const container = startContainer(services[kind], {
          name: `${network.name}-${kind}-${i + 1}`,
          address: member.address,
          args: ['--network', `ns:${member.path}`, ...names.flatMap((name) => ['--add-host', `${name}:${HUB}`])],
          env,
        });
        stack.defer(() => container.kill());
        return container;
      });
    const started = { servers: start('server'), workers: start('worker') };
    const owned = stack.move();
    return { ...started, request: network.request, [Symbol.asyncDispose]: () => owned.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

interface Position {
  readonly name: string;
  readonly address: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

function startContainer(
  service: Service,
  { name, address, args, env }: Position,
): Container & { kill(): Promise<void> } {
  const { command, environment, healthcheck, stop_grace_period: grace = '' } = service;
  const variables = Object.entries(environment).flatMap(([key, value]) => [
    '--env',
    `${key}=${interpolate(value, env)}`,
  ]);
  const [file = '', ...run] = [...RUN, '--name', name, ...args, ...toRights(service), ...variables, IMAGE, ...command];
  const child = spawn(file, run, { stdio: ['ignore', 'ignore', 'inherit'] });
  let hasEnded = false;
  const ended = once(child, 'exit').then(([code]: unknown[]) => {
    hasEnded = true;
    return code as number | null;
  });
  const podman = (...words: string[]): Promise<{ stdout: string }> =>
    execute(PODMAN[0]!, [...PODMAN.slice(1), ...words]);
  const inside: Container['run'] = (...words) =>
    podman('exec', name, ...words).then(
      ({ stdout }) => ({ code: 0, output: stdout.trim() }),
      (error: { code: number; stdout: string }) => ({ code: error.code, output: error.stdout.trim() }),
    );
  return {
    name,
    address,
    ended,
    run: inside,
    async healthy() {
      const [, ...check] = healthcheck!.test;
      while ((await inside(...check)).code !== 0) if (hasEnded) throw new Error(`${name} ended before it was healthy`);
    },
    async stop() {
      await podman('stop', '--time', grace.replace('s', ''), name);
    },
    async kill() {
      if (!hasEnded) await podman('kill', name).catch(() => {});
      await ended;
    },
  };
}

/** What the file says that a container may do. A field that this does not know fails, or it would not be tested. */
function toRights(service: Service): string[] {
  const { user, read_only: isReadOnly, tmpfs, cap_drop: dropped, security_opt: security, ...rest } = service;
  const known = [
    'image',
    'pull_policy',
    'restart',
    'depends_on',
    'command',
    'environment',
    'deploy',
    'ports',
    'expose',
  ];
  const unknown = Object.keys(rest).filter((key) => ![...known, 'healthcheck', 'stop_grace_period'].includes(key));
  if (unknown.length > 0) throw new Error(`compose.yaml has ${unknown.join(', ')}, which no container here gets`);
  return [
    '--user',
    user as string,
    ...(isReadOnly === true ? ['--read-only'] : []),
    ...(tmpfs as string[]).flatMap((path) => ['--tmpfs', path]),
    ...(dropped as string[]).flatMap((right) => ['--cap-drop', right]),
    ...(security as string[]).flatMap((option) => ['--security-opt', option]),
  ];
}

/** A bridge in a namespace: nothing on it reaches another network but the ports that it is given. */
async function openNetwork(ports: Options['ports']) {
  const name = `whoa-${process.pid}`;
  const folder = mkdtempSync(join(tmpdir(), 'whoa-network-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const open = (namespace: string): void => {
    ip('netns', 'add', namespace);
    stack.defer(() => void ip('netns', 'del', namespace));
    ip('-n', namespace, 'link', 'set', 'lo', 'up');
  };
  open(name);
  ip('-n', name, 'link', 'add', 'hub', 'type', 'bridge');
  ip('-n', name, 'addr', 'add', `${HUB}/24`, 'dev', 'hub');
  ip('-n', name, 'link', 'set', 'hub', 'up');
  for (const [port, target] of Object.entries(ports)) {
    const socket = join(folder, port);
    const outside = createServer((from) =>
      from.pipe(connect(target, '127.0.0.1').on('error', () => from.destroy())).pipe(from),
    );
    outside.listen(socket);
    await once(outside, 'listening');
    stack.defer(() => void outside.close());
    const relay = enter(name, RELAY, [port, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
    stack.defer(async () => {
      relay.kill('SIGKILL');
      await once(relay, 'close');
    });
    await once(relay.stdout!, 'data');
  }
  let members = 0;
  const owned = stack.move();
  return {
    name,
    join(): { readonly path: string; readonly address: string } {
      const [member, number] = [`${name}-${++members}`, 10 + members];
      ip('netns', 'add', member);
      owned.defer(() => void ip('netns', 'del', member));
      ip('-n', member, 'link', 'set', 'lo', 'up');
      ip('-n', name, 'link', 'add', `m${members}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', member);
      ip('-n', name, 'link', 'set', `m${members}`, 'master', 'hub', 'up');
      ip('-n', member, 'addr', 'add', `10.77.0.${number}/24`, 'dev', 'eth0');
      ip('-n', member, 'link', 'set', 'eth0', 'up');
      return { path: `/run/netns/${member}`, address: `10.77.0.${number}` };
    },
    request: async (url: string, init: object = {}): Promise<Response> => {
      const args = [
        'netns',
        'exec',
        name,
        process.execPath,
        '--input-type=module',
        '-e',
        REQUEST,
        url,
        JSON.stringify(init),
      ];
      return JSON.parse((await execute('ip', args)).stdout) as Response;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const enter = (namespace: string, program: string, args: readonly string[], options: SpawnOptions) =>
  spawn('ip', ['netns', 'exec', namespace, process.execPath, '-e', program, ...args], options);

const RELAY = `const net = require('node:net');
const [, port, socket] = process.argv;
net.createServer((from) => {
  const to = net.connect(socket);
  for (const [one, other] of [[from, to], [to, from]]) one.on('error', () => other.destroy()).on('close', () => other.destroy()).pipe(other);
}).listen(Number(port), () => console.log('ready'));`;

const REQUEST = `const [, url, init] = process.argv;
const response = await fetch(url, JSON.parse(init));
console.log(JSON.stringify({ status: response.status, body: await response.text() }));`;
