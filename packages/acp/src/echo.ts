import { createAgent, sleep, toText } from '@whoa/core';
import { systemWorld, type World } from '@whoa/core/embed';
import { type Planner, reply } from '@whoa/core/model';
import { type AcpConnection, type ServeOptions, serveAcp } from './serve.ts';

export interface EchoOptions extends ServeOptions {
  /** How long it waits before it replies. Defaults to 1. */
  readonly delaySeconds?: number | undefined;
  readonly world?: World | undefined;
}

/**
 * Serves the simplest possible agent: it waits, then repeats its input. Useful for trying out a cancel.
 *
 * @returns The connection. It ends when the client disconnects; dispose it to end it from this side.
 * @throws RangeError when `delaySeconds` is not a duration.
 */
export function serveEcho({ delaySeconds = 1, world = systemWorld, ...options }: EchoOptions = {}): AcpConnection {
  if (!(delaySeconds >= 0 && Number.isFinite(delaySeconds))) {
    throw new RangeError(`delaySeconds: expected 0 or more, got ${delaySeconds}`);
  }
  const planner: Planner = {
    async next(history, { token }) {
      const message = history.findLast((message) => message.role === 'user');
      await sleep(delaySeconds * 1_000, { clock: world.clock, token });
      return reply(toText(message?.content ?? ''));
    },
  };
  const info = { name: 'whoa-echo', title: 'Whoa echo', version: '0.1.0' };
  return serveAcp({ createAgent: () => createAgent({ name: 'echo', planner, world }), info, world }, options);
}
