import { isRunning, type ProcessIdentity, readChildren } from '../identity/identity.ts';
import { readProcFile } from '../identity/proc-file.ts';
import { signalProcess } from '../signal.ts';
import type { Fence } from './fence.ts';

/**
 * A PID namespace around a command, made by the program that `open` names. Its first process is the outer post; that
 * one's child is the namespace's init, the inner post. When init ends the kernel kills everything inside and waits for it,
 * so an ended init is the proof.
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
      // An outer post that ended by itself has seen its init end.
      if (options.waitsForInit) exited.then(({ code }) => (closed = code !== null)).catch(() => {});
    },
    isPost(member) {
      if (member.pid === root?.pid || inits.some(({ pid }) => pid === member.pid)) return true;
      const pids = readPids(member.pid);
      // The outer post may end first; then init has another parent.
      const isInit =
        member.parent === root?.pid || (pids?.at(-1) === '1' && pids.length === readPids('self')!.length + 1);
      if (isInit) inits.push(member);
      // Who has just ended is nobody to ask or to count, but no proof either.
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

/** `unshare` makes the namespace; `setpriv` makes it go when the host goes. */
export function unshareArguments(): readonly string[] {
  const asUser = process.getuid?.() === 0 ? [] : ['--user', '--map-current-user'];
  const open = ['unshare', ...asUser, '--pid', '--fork', '--kill-child', '--mount-proc', '--'];
  // A shell as init: the kernel hides TERM from an init, and the command itself must hear it.
  return ['setpriv', '--pdeathsig', 'KILL', ...open, '/bin/sh', '-c', '"$@"; exit $?', 'init'];
}

/** Bubblewrap with everything visible as it is: a fence, not a sandbox. */
export function bubblewrapArguments(): readonly string[] {
  return ['bwrap', '--dev-bind', '/', '/', '--proc', '/proc', '--unshare-pid', '--die-with-parent', '--'];
}
