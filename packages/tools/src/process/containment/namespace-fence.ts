import { isRunning, type ProcessIdentity, readChildren } from '../identity/identity.ts';
import { readProcFile } from '../identity/proc-file.ts';
import { signalProcess } from '../signal.ts';
import type { Fence } from './fence.ts';

/**
 * A PID namespace around a command, created by the program that `open` names. Its first process is the outer post; its child
 * is the init of the namespace, the inner post. When init ends, the kernel kills all processes inside and waits for them. So
 * the end of init is the proof.
 */
export function createNamespaceFence(open: readonly string[], options: { waitsForInit: boolean }): Fence {
  let root: ProcessIdentity | undefined;
  let inits: ProcessIdentity[] = [];
  let closed = false;
  return {
    isTight: true,
    wrap: (argv) => [...open, ...argv],
    enter(first, exited) {
      root = first;
      // An outer post that exits by itself has waited for its init.
      if (options.waitsForInit) exited.then(({ code }) => (closed = code !== null)).catch(() => {});
    },
    isPost(member) {
      if (member.pid === root?.pid || inits.some(({ pid }) => pid === member.pid)) return true;
      const pids = readPids(member.pid);
      // If the outer post ends first, init gets another parent.
      const isInit =
        member.parent === root?.pid || (pids?.at(-1) === '1' && pids.length === readPids('self')!.length + 1);
      if (isInit) inits.push(member);
      // A process that has just ended need not be signalled or counted, but it is no proof either.
      return isInit || pids === undefined;
    },
    kill() {
      if (root === undefined) return false;
      const children = readChildren(root.pid);
      if (children.length > 0) inits = children;
      for (const init of inits) signalProcess(init, 'SIGKILL');
      return signalProcess(root, 'SIGKILL') !== 'refused';
    },
    isEmpty() {
      if (closed) return true;
      if (root === undefined || isRunning(root)) return false;
      return inits.length === 0 ? undefined : !inits.some(isRunning);
    },
    [Symbol.dispose]() {},
  };
}

/** A process's pids, from this namespace to its own. */
function readPids(pid: number | 'self'): string[] | undefined {
  const status = readProcFile(`/proc/${pid}/status`)?.toString('latin1');
  return /^NSpid:\t(.*)$/m.exec(status ?? '')?.[1]?.split('\t');
}

/** `unshare` creates the namespace; `setpriv` ends it when the host ends. */
export function unshareArguments(): readonly string[] {
  const asUser = process.getuid?.() === 0 ? [] : ['--user', '--map-current-user'];
  const open = ['unshare', ...asUser, '--pid', '--fork', '--kill-child', '--mount-proc', '--'];
  // Use a shell as init: the kernel does not deliver TERM to an init, and the command must receive it.
  return ['setpriv', '--pdeathsig', 'KILL', ...open, '/bin/sh', '-c', '"$@"; exit $?', 'init'];
}

/** Bubblewrap without any restrictions: a fence, not a sandbox. */
export function bubblewrapArguments(): readonly string[] {
  return ['bwrap', '--dev-bind', '/', '/', '--proc', '/proc', '--unshare-pid', '--die-with-parent', '--'];
}
