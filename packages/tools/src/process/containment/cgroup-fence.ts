import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Fence } from './fence.ts';

/** A control group (v2) around a command: it reaches what the host may not signal, also what became root. */
export function createControlGroupFence(folder: string): Fence {
  mkdirSync(folder, { recursive: true });
  return {
    // Who may write itself into a group may write itself into another: what this host can do, its commands can.
    isTight: false,
    wrap: (argv) => ['/bin/sh', '-c', 'echo 0 > "$0" && exec "$@"', join(folder, 'cgroup.procs'), ...argv],
    enter() {},
    isPost: () => false,
    kill: () => attempt(() => writeFileSync(join(folder, 'cgroup.kill'), '1')).ok,
    isEmpty: () => attempt(() => readFileSync(join(folder, 'cgroup.events'), 'utf8')).value?.includes('populated 0'),
    [Symbol.dispose]() {
      attempt(() => rmdirSync(folder));
    },
  };
}

/** Somebody else may have taken the folder away; then signals have to do. */
function attempt<T>(action: () => T): { ok: boolean; value?: T } {
  try {
    return { ok: true, value: action() };
  } catch {
    return { ok: false };
  }
}

/** Where this process may make control groups: its own place in the v2 tree. */
export function findControlGroupRoot(): string {
  const mount = /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/self/mounts', 'utf8'))?.[1];
  const own = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
  if (mount === undefined || own === undefined) throw new Error('no control groups v2 are mounted here');
  return join(mount, own);
}
