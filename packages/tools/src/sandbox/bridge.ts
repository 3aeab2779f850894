import { realpathSync } from 'node:fs';

const PORT = 3128;
const SOCKET = '/run/whoa/proxy.sock';
const NODE = '/run/whoa/node';
const PROXY = `http://127.0.0.1:${PORT}`;

/** The environment variables that point programs to the proxy. */
export const PROXY_ENVIRONMENT: Readonly<Record<string, string>> = {
  http_proxy: PROXY,
  https_proxy: PROXY,
  HTTP_PROXY: PROXY,
  HTTPS_PROXY: PROXY,
  no_proxy: '',
  NO_PROXY: '',
  npm_config_noproxy: '',
  // Node's fetch needs this, since version 24.
  NODE_USE_ENV_PROXY: '1',
};

export function bridgeMounts(socket: string): readonly string[] {
  return ['--ro-bind', socket, SOCKET, '--ro-bind', realpathSync(process.execPath), NODE];
}

/**
 * Runs a command next to a bridge from a port inside to the socket of the proxy. The script is inline because our files are
 * not visible inside the sandbox.
 */
export function bridgeArguments(argv: readonly string[]): readonly string[] {
  return [NODE, '-e', BRIDGE, ...argv];
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
