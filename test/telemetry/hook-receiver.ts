// A service that receives webhooks, on a socket of this machine.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface ReceivedHook {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly event: { readonly type: string; readonly data: Readonly<Record<string, unknown>> };
}

export interface HookReceiver {
  readonly url: string;
  readonly hooks: readonly ReceivedHook[];
  /** How many connections were opened. */
  readonly connections: () => number;
  /** Resolves when so many have arrived. */
  received(count: number): Promise<void>;
}

/** What to answer to the nth request, from 0; `undefined` never answers. */
export type Answer = (index: number) => { status: number; headers?: Record<string, string> } | undefined;

/** Starts a service. It is closed when the test has ended. */
export async function startHookReceiver(answer: Answer = () => ({ status: 204 })): Promise<HookReceiver> {
  const hooks: ReceivedHook[] = [];
  const waiting = new Set<() => void>();
  let connections = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const answered = answer(hooks.length);
      hooks.push({
        headers: request.headers as Record<string, string>,
        body,
        event: JSON.parse(body) as ReceivedHook['event'],
      });
      if (answered !== undefined) response.writeHead(answered.status, answered.headers).end();
      for (const look of waiting) look();
    });
  });
  server.on('connection', () => connections++);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    hooks,
    connections: () => connections,
    received: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (hooks.length < count) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
  };
}
