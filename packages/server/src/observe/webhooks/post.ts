import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Clock } from '@whoa/core/embed';
import { checkHost, createPublicLookup } from './public-address.ts';

export interface PostOptions {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly allowPrivateAddresses: boolean;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Resolves names. Defaults to the resolver of the system. */
  readonly lookup?: LookupFunction | undefined;
}

/**
 * Sends one request and returns the status of its response. The body of the response is not read, and a redirect is not
 * followed: it could lead anywhere.
 */
export async function post(options: PostOptions): Promise<number> {
  const { url, body, allowPrivateAddresses, timeoutMs, clock, signal } = options;
  signal.throwIfAborted();
  if (!allowPrivateAddresses) checkHost(url.hostname);
  const lookup = allowPrivateAddresses ? options.lookup : createPublicLookup(options.lookup);
  const headers = { ...options.headers, 'content-length': `${Buffer.byteLength(body)}` };
  const send = url.protocol === 'https:' ? requestHttps : requestHttp;
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  // No shared agent: one could bring a connection that was opened without this check.
  const request = send(url, { method: 'POST', headers, agent: false, signal, ...(lookup && { lookup }) });
  const late = (): unknown => request.destroy(new Error(`no response within ${timeoutMs} ms`));
  const timer = clock.setTimer(timeoutMs, late);
  request.once('response', (response) => {
    resolve(response.statusCode ?? 0);
    response.on('error', () => {});
    response.destroy();
  });
  request.on('error', reject);
  request.end(body);
  try {
    return await promise;
  } finally {
    timer[Symbol.dispose]();
    request.destroy();
  }
}
