import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Fence } from './fence.ts';

/** A control group (v2) around a command. It can end processes that the host may not signal, such as those of root. */
export function createControlGroupFence(folder: string): Fence {
  mkdirSync(folder, { recursive: true });
  return {
    // A process that can join a group can join another: commands can do whatever the host can.
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

/** Another process may have removed the folder. Then fall back to signals. */
function attempt<T>(action: () => T): { ok: boolean; value?: T } {
  try {
    return { ok: true, value: action() };
  } catch {
    return { ok: false };
  }
}

/** The control group of this process, where it may create others. */
export function findControlGroupRoot(): string {
  const mount = /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/self/mounts', 'utf8'))?.[1];
  const own = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
  if (mount === undefined || own === undefined) throw new Error('control groups v2 are not mounted');
  return join(mount, own);
}
