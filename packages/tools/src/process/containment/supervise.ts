import type { ChildProcess } from 'node:child_process';
import type { ProcessIdentity } from '../identity/identity.ts';
import { type ProcessChoice, startedSince } from '../identity/moment.ts';
import { narrowScope, type Scope } from '../identity/scope.ts';
import type { OutputTap } from '../output/output.ts';
import type { Sweeper } from '../sweeper.ts';
import { type Boundary, type Ended, endBoundary, MAX_KILL_MS } from './boundary.ts';
import type { Cgroup } from './cgroup.ts';
import { CgroupBoundary } from './cgroup-boundary.ts';
import {
  type CleanupReport,
  type ContainedProcess,
  createHandle,
  type ProcessExit,
  toReport,
  waitForExit,
} from './contained.ts';
import { NamespaceBoundary, readReport } from './namespace.ts';
import type { LinuxTechnique } from './technique.ts';

interface Watched {
  readonly technique: LinuxTechnique;
  readonly child: ChildProcess;
  readonly root: ProcessIdentity;
  readonly scope: Scope;
  readonly sweeper: Sweeper;
  readonly output: OutputTap | undefined;
  readonly cgroup: Cgroup | undefined;
  readonly graceMs: number;
  /** Whether a bridge to the network runs inside. */
  readonly isOnline: boolean;
}

interface Listener {
  /** An end begins. It takes less than this time unless this process is frozen or too busy. */
  readonly onEnding: (withinMs: number) => void;
  readonly onEnd: (isProved: boolean) => void;
}

/** Creates the handle of a command that runs, and ends it by what is around it: the kernel's boundary, or its tags. */
export function supervise(watched: Watched, { onEnding, onEnd }: Listener): ContainedProcess {
  const { child, root, output } = watched;
  const exited = waitForExit(child);
  const leftBehind = readReport(child);
  const ender = watched.technique === 'tags' ? endByTags(watched) : endByKernel(watched, exited);
  let isHurried = false;
  const shortenGrace = (): void => {
    isHurried = true;
    ender.shortenGrace();
  };
  async function end(method: 'ask' | 'kill'): Promise<CleanupReport> {
    // Read the output of killed processes later, so that it does not delay the kill.
    if (method === 'kill') output?.pause();
    const graceMs = method === 'kill' ? 0 : watched.graceMs;
    onEnding(graceMs + MAX_KILL_MS);
    // Its deadline is written first: the command may freeze this process when it is asked to end.
    await Promise.resolve();
    const { verified, ended, survivors } = await ender.end(isHurried ? 0 : graceMs);
    // It has ended. Wait until it is reaped.
    if (!survivors.some(({ pid }) => pid === root.pid)) await exited;
    output?.resume();
    onEnd(survivors.length === 0);
    // What the shell of a namespace left behind has ended with it. What we saw before includes it.
    return toReport(verified, survivors.length > 0 ? ended : Math.max(ended, await leftBehind), survivors);
  }

  const endSince: ContainedProcess['endSince'] = async (moment, { except = [], onDead } = {}) => {
    const choice = startedSince(moment, except);
    const { verified, ended, survivors } = await ender.endChosen(choice.choose, () => {
      if (onDead === undefined) return;
      // The caller may start other work now.
      choice.close();
      onDead();
    });
    return { ...toReport(verified, ended, survivors), ...(choice.shared > 0 && { shared: choice.shared }) };
  };

  return createHandle(child, { output, exited, end, shortenGrace, endSince });
}

/** Ends a command or a part of it. */
interface Ender {
  end(graceMs: number): Promise<Ended>;
  endChosen(choose: ProcessChoice['choose'], onDead: () => void): Promise<Ended>;
  /** Ends the grace period now. */
  shortenGrace(): void;
}

function endByTags({ child, scope, sweeper, graceMs }: Watched): Ender & { forget(): void } {
  child.once('exit', sweeper.wake);
  sweeper.add(scope);
  const forget = (): void => sweeper.delete(scope);
  return {
    end: (graceMs) => sweeper.end(scope, { graceMs }).finally(forget),
    forget,
    endChosen: (choose, onDead) => sweeper.end(narrowScope(scope, choose), { graceMs, onDead }),
    shortenGrace: () => sweeper.shortenGrace(scope),
  };
}

function endByKernel(watched: Watched, exited: Promise<ProcessExit>): Ender {
  const { cgroup, root, graceMs, isOnline } = watched;
  const hurry = new AbortController();
  const inCgroup = cgroup && new CgroupBoundary(cgroup, { root, exited });
  const boundary: Boundary = inCgroup ?? new NamespaceBoundary(root, { exited, own: isOnline ? 3 : 1 });
  // Without a cgroup only a scan shows what a part of the command is.
  const byTags = inCgroup === undefined ? endByTags(watched) : undefined;
  return {
    end: (graceMs) => endBoundary(boundary, { graceMs, hurry: hurry.signal }).finally(() => byTags?.forget()),
    endChosen: (choose, onDead) =>
      inCgroup?.endChosen(choose, { graceMs, hurry: hurry.signal, onDead }) ?? byTags!.endChosen(choose, onDead),
    shortenGrace() {
      hurry.abort();
      byTags?.shortenGrace();
    },
  };
}
