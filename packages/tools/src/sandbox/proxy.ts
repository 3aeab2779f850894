import { lookup } from 'node:dns/promises';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { SettingsError } from '@whoa/core';
import { isPublicAddress } from '@whoa/core/addresses';
import { describeError } from '@whoa/core/internal';
import type { NetworkOptions } from './options.ts';

const MAX_CONNECTIONS = 256;
const CONNECT_MS = 30_000;

/** A proxy that lets commands reach only the hosts of an allow-list. */
export interface AllowListProxy extends AsyncDisposable {
  readonly socket: string;
}

interface Target {
  readonly host: string;
  readonly port: number;
}

/** Returns every address of a name. */
type Resolve = (host: string) => Promise<readonly { readonly address: string }[]>;
const resolveAll: Resolve = (host) => lookup(host, { all: true });

/** Listens on a socket in a private folder, which is removed when the host ends. */
export async function startProxy(
  socket: string,
  options: NetworkOptions,
  resolve: Resolve = resolveAll,
): Promise<AllowListProxy> {
  const rules = options.allow.map(readRule);
  const checkTarget = async (target: Target): Promise<string> => {
    const { address, reason } = await judgeTarget(target, { rules, resolve });
    options.onRequest?.({
      at: Date.now(),
      ...target,
      isAllowed: reason === undefined,
      ...(reason !== undefined && { reason }),
    });
    if (address === undefined) throw new Refusal(`${target.host}:${target.port} is refused: ${reason}`);
    return address;
  };
  const open = new Set<Duplex>();
  const server = createServer((request, response) => {
    forward(request, response, checkTarget).catch((error: unknown) => refuse(response, error));
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.on('connection', (connection: Socket) => {
    open.add(connection);
    connection.once('close', () => open.delete(connection));
  });
  server.on('connect', (request, client, head) => {
    client.on('error', () => client.destroy());
    tunnel(request, client, { head, checkTarget }).catch((error: unknown) => {
      client.end(
        `HTTP/1.1 ${error instanceof Refusal ? '403 Forbidden' : '502 Bad Gateway'}\r\n\r\n${describeError(error)}\n`,
      );
    });
  });
  await new Promise<void>((done, reject) => {
    server.once('error', reject);
    server.listen(socket, done);
  });
  // It must not keep the host alive.
  server.unref();
  return {
    socket,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((done) => server.close(done));
      for (const connection of open) connection.destroy();
      await closed;
    },
  };
}

class Refusal extends Error {}

type CheckTarget = (target: Target) => Promise<string>;

async function forward(request: IncomingMessage, response: ServerResponse, checkTarget: CheckTarget): Promise<void> {
  const url = new URL(request.url ?? '');
  if (url.protocol !== 'http:') throw new Refusal('only http and https are allowed');
  const target = { host: url.hostname, port: Number(url.port || 80) };
  const host = await checkTarget(target);
  const { 'proxy-connection': _, ...headers } = request.headers;
  const onward = httpRequest({
    host,
    port: target.port,
    path: url.pathname + url.search,
    method: request.method,
    headers: { ...headers, host: url.host },
    timeout: CONNECT_MS,
  });
  onward.once('response', (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  onward.once('timeout', () => onward.destroy(new Error('the server did not respond')));
  onward.once('error', (error) => refuse(response, error));
  response.once('close', () => onward.destroy());
  request.pipe(onward);
}

async function tunnel(
  request: IncomingMessage,
  client: Duplex,
  { head, checkTarget }: { head: Buffer; checkTarget: CheckTarget },
): Promise<void> {
  const [, host = '', port = ''] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(request.url ?? '') ?? [];
  const address = await checkTarget({ host, port: Number(port) });
  const server = connect({ host: address, port: Number(port), timeout: CONNECT_MS });
  server.once('timeout', () => server.destroy(new Error('the server did not respond')));
  await new Promise<void>((resolve, reject) => server.once('connect', resolve).once('error', reject));
  server.setTimeout(0);
  server.on('error', () => client.destroy());
  client.once('close', () => server.destroy());
  client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
  server.write(head);
  server.pipe(client).pipe(server);
}

function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent) response.destroy();
  else
    response.writeHead(error instanceof Refusal ? 403 : 502, { connection: 'close' }).end(`${describeError(error)}\n`);
}

interface Rule {
  readonly host: string;
  readonly ports: readonly number[];
}

function readRule(entry: string): Rule {
  const [, host = '', port] = /^(\*\.[\w.-]+|[\w.-]+|\[[\da-f:]+\])(?::(\d+))?$/i.exec(entry) ?? [];
  if (host === '')
    throw new SettingsError(
      'sandbox.network.allow',
      `'${entry}' is not a host, such as example.com or *.example.com:8443`,
    );
  return { host: host.replace(/^\[|\]$/g, '').toLowerCase(), ports: port === undefined ? [80, 443] : [Number(port)] };
}

async function judgeTarget(
  target: Target,
  { rules, resolve }: { readonly rules: readonly Rule[]; readonly resolve: Resolve },
): Promise<{ address?: string; reason?: string }> {
  const host = target.host.toLowerCase().replace(/\.$/, '');
  const rule = rules.find((one) => one.ports.includes(target.port) && isNamed(one.host, host));
  if (rule === undefined) return { reason: 'it is not on the list' };
  if (rule.host === host && (isIP(host) !== 0 || host === 'localhost')) return { address: host };
  try {
    const addresses = (await resolve(host)).map(({ address }) => address);
    // A public name that resolves to this machine or its network is an attack.
    const inside = addresses.find((address) => !isPublicAddress(address));
    if (inside !== undefined) return { reason: `it resolves to the internal address ${inside}` };
    const [address] = addresses;
    return address === undefined ? { reason: 'it has no address' } : { address };
  } catch (error) {
    return { reason: describeError(error) };
  }
}

function isNamed(pattern: string, host: string): boolean {
  return pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : pattern === host;
}
