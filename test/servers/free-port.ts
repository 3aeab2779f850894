import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

const LOWEST = 15_000;
const given = new Set<number>();

/**
 * A free loopback port for a server that needs to know its port, and may be restarted on it. It is below the range that
 * the kernel uses for outgoing connections, so that none of them can occupy it before the server does.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, firstOutgoing());
    if (!given.has(port) && (await isFree(port))) {
      given.add(port);
      return port;
    }
  }
}

function firstOutgoing(): number {
  return Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s/)[0]);
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port, '127.0.0.1');
  try {
    await once(probe, 'listening');
  } catch {
    return false;
  }
  probe.close();
  await once(probe, 'close');
  return true;
}
