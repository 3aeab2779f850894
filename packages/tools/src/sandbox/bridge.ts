import { realpathSync } from 'node:fs';

const PORT = 3128;
const SOCKET = '/run/whoa/proxy.sock';
const NODE = '/run/whoa/node';
const PROXY = `http://127.0.0.1:${PORT}`;
const LOOPBACK = /^(localhost|127\.|\[)/;

/**
 * The environment variables that point programs to the proxy. The loopback is the sandbox's own, and some agents are clients of
 * a server that they start there, unless a server on the host's is on the list.
 */
export function proxyEnvironment(hosts: readonly string[]): Readonly<Record<string, string>> {
  const direct = hosts.some((host) => LOOPBACK.test(host)) ? '' : 'localhost,127.0.0.1,::1';
  return {
    http_proxy: PROXY,
    https_proxy: PROXY,
    HTTP_PROXY: PROXY,
    HTTPS_PROXY: PROXY,
    no_proxy: direct,
    NO_PROXY: direct,
    npm_config_noproxy: direct,
    // Node's fetch needs this, since version 24.
    NODE_USE_ENV_PROXY: '1',
  };
}

export function bridgeMounts(socket: string): readonly string[] {
  return ['--ro-bind', socket, SOCKET, '--ro-bind', realpathSync(process.execPath), NODE];
}

/**
 * Runs a command next to a bridge from a port inside to the socket of the proxy. The script is inline because our files are
 * not visible inside the sandbox. A shell is the init, because it takes in orphans.
 */
export function bridgeArguments(argv: readonly string[]): readonly string[] {
  return ['/bin/sh', '-c', '"$@"; exit $?', 'whoa', NODE, '-e', BRIDGE, ...argv];
}

const BRIDGE = `
const net = require('node:net');
const { spawn } = require('node:child_process');
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {});
const server = net.createServer((inside) => {
  const outside = net.connect('${SOCKET}');
  inside.pipe(outside).pipe(inside);
  inside.on('error', () => outside.destroy());
  outside.on('error', () => inside.destroy());
});
server.listen(${PORT}, '127.0.0.1', () => {
  const [file, ...args] = process.argv.slice(1);
  const child = spawn(file, args, { stdio: [0, 1, 2, 'ignore', 4] });
  child.on('error', (error) => { console.error(error.message); process.exit(127); });
  child.on('exit', (code, signal) => process.exit(code ?? 128 + require('node:os').constants.signals[signal]));
});
`;
