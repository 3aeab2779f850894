// Network namespaces that tests make themselves. Needs root and iproute2.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';

/**
 * A network namespace. A process in it reaches us over one link, which can be cut: packets vanish, and neither side
 * learns of it.
 */
export interface Namespace extends Disposable {
  /** Our end of the link: servers that listen there are reachable from inside. */
  readonly host: string;
  /** The command that starts a program inside: put it before the program. */
  readonly inside: readonly string[];
  cut(): void;
  mend(): void;
}

/** The address of a network card that does not exist. */
const UNUSED_ADDRESS = '02:00:00:00:00:01';
let made = 0;

/** Why there are no namespaces here; `undefined` if there are. */
export function whyNoNamespaces(): string | undefined {
  try {
    createNamespace()[Symbol.dispose]();
    return undefined;
  } catch (error) {
    return `no network namespaces here: ${
      String((error as Error).message)
        .split('\n')
        .at(-2) ?? 'no iproute2'
    }`;
  }
}

const ip = (...args: readonly string[]): void => void execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });

export function createNamespace(): Namespace {
  if (made === 0) removeLeft();
  const number = ++made;
  // The process id is in the name, so that parallel tests do not collide; a name has at most 15 characters.
  const name = `whoa${process.pid.toString(36)}x${number}`;
  const [cable, end] = [`${name}a`, `${name}b`];
  const subnet = `10.${213 + (process.pid % 32)}.${number % 256}`;
  const [host, guest] = [`${subnet}.1`, `${subnet}.2`];
  ip('netns', 'add', name);
  // Packets to a card that does not exist are dropped silently. Filters and delays need kernel modules.
  const address = (card: string | undefined): void => {
    for (const [where, other, device] of [
      [[], guest, cable],
      [['-n', name], host, end],
    ] as const) {
      if (card === undefined) ip(...where, 'neigh', 'del', other, 'dev', device);
      else ip(...where, 'neigh', 'replace', other, 'lladdr', card, 'dev', device, 'nud', 'permanent');
    }
  };
  const dispose = (): void => ip('netns', 'del', name);
  try {
    ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', end, 'netns', name);
    ip('addr', 'add', `${host}/30`, 'dev', cable);
    ip('link', 'set', cable, 'up');
    ip('-n', name, 'addr', 'add', `${guest}/30`, 'dev', end);
    ip('-n', name, 'link', 'set', end, 'up');
    ip('-n', name, 'link', 'set', 'lo', 'up');
  } catch (error) {
    dispose();
    throw error;
  }
  return {
    host,
    inside: ['ip', 'netns', 'exec', name],
    cut: () => address(UNUSED_ADDRESS),
    mend: () => address(undefined),
    [Symbol.dispose]: dispose,
  };
}

/** Removes what killed processes left behind. */
function removeLeft(): void {
  const names = existsSync('/run/netns') ? readdirSync('/run/netns') : [];
  for (const name of names) {
    const [, pid] = /^whoa([0-9a-z]+)x\d+$/.exec(name) ?? [];
    if (pid !== undefined && !existsSync(`/proc/${Number.parseInt(pid, 36)}`)) ip('netns', 'del', name);
  }
}
