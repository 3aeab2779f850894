import { type ChildProcess, spawn } from 'node:child_process';
import { requireSandbox } from '../../sandbox/detect.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { Pipes } from '../fifo.ts';
import { createHostDirectory, removeHostDirectory } from '../host-directory.ts';
import { identify, type ProcessIdentity } from '../identity/identity.ts';
import { startedSince } from '../identity/moment.ts';
import { readPidMoment } from '../identity/pid-clock.ts';
import { narrowScope, Scope } from '../identity/scope.ts';
import { createHostTag, type HostTag, tagArguments, tagEnvironment, tagKey } from '../identity/tags.ts';
import { endLeftovers } from '../leftovers.ts';
import { type OutputTap, tapPipe } from '../output/output.ts';
import { Sweeper } from '../sweeper.ts';
import { findWatchdog, WatchdogLink } from '../watchdog-link.ts';
import {
  type CleanupReport,
  type ContainedProcess,
  createHandle,
  firstThree,
  GRACE_MS,
  OVER,
  type ProcessCommand,
  toReport,
  waitForExit,
  waitForSpawn,
} from './contained.ts';
import type { Containment } from './containment.ts';
import { fenceArguments, fenceScript, KernelBoundary, readReport } from './kernel-boundary.ts';
import { requireTechnique } from './technique.ts';

/** The resources of a containment, opened on first use. */
interface Host {
  readonly folder: string;
  readonly lifeline: WatchdogLink;
  readonly pipes: Pipes;
  readonly leftovers: Promise<unknown>;
}

/** The containment for Linux: tags, and with `bubblewrap` also a fence, which a sandbox creates itself. */
export function createTaggedContainment(
  technique: 'tags' | 'bubblewrap',
  { sandbox, graceMs = GRACE_MS }: { readonly sandbox?: Sandbox | undefined; readonly graceMs?: number } = {},
): Containment {
  const tag = createHostTag();
  const sweeper = new Sweeper();
  const live = new Set<ContainedProcess>();
  let commands = 0;
  let host: Host | undefined;
  let checked: Promise<void> | undefined;
  let isOver = false;

  function openHost(): Host {
    if (isOver) throw new Error(OVER);
    if (host === undefined) {
      const watchdog = findWatchdog();
      const own = createHostDirectory(tag);
      const leftovers = endLeftovers().catch((error: unknown) =>
        process.emitWarning(new Error('Could not end processes of an earlier host', { cause: error })),
      );
      host = { folder: own.folder, lifeline: new WatchdogLink(own, watchdog), pipes: new Pipes(own.folder), leftovers };
    }
    return host;
  }

  async function start(command: ProcessCommand): Promise<ContainedProcess> {
    if (sandbox !== undefined) await (checked ??= requireSandbox(sandbox, openHost().folder));
    else if (technique !== 'tags') await (checked ??= requireTechnique(technique));
    const output = command.onOutput && tapPipe(await openHost().pipes.open(), command.onOutput);
    const number = ++commands;
    try {
      // Check again: it may have been disposed while the pipe was created.
      const { lifeline, folder } = openHost();
      // Read this before the start, so that no process is missed.
      const { forks, lastBefore } = readPidMoment();
      const { child, root } = await launch(command, { tag, number, technique, sandbox, folder, output });
      lifeline.add(root);
      const isBridged = sandbox?.isOnline ?? false;
      const fence = technique === 'bubblewrap' ? new KernelBoundary(root, { isBridged }) : undefined;
      const scope = new Scope(tagKey(tag, number), {
        roots: [root],
        since: root.startTime,
        born: { last: root.pid, forks, lastBefore },
        isHeld: () => child.exitCode === null && child.signalCode === null,
      });
      const contained = supervise({ child, root, scope, sweeper, output, fence, graceMs }, (isProved) => {
        live.delete(contained);
        if (isProved) lifeline.delete(root);
      });
      live.add(contained);
      return contained;
    } catch (error) {
      output?.[Symbol.dispose]();
      throw error;
    }
  }

  return {
    technique,
    hosts: sandbox?.hosts ?? [],
    sandbox: sandbox?.kind ?? 'none',
    workspace: sandbox?.workspace,
    folder: () => openHost().folder,
    start,
    async [Symbol.asyncDispose]() {
      isOver = true;
      await Promise.all([...live].map((contained) => contained.end()));
      await host?.leftovers;
      await sandbox?.[Symbol.asyncDispose]();
      await host?.pipes[Symbol.asyncDispose]();
      // The watchdog sweeps once more and removes the folder.
      await host?.lifeline[Symbol.asyncDispose]();
      if (host !== undefined) removeHostDirectory(host.folder);
    },
  };
}

interface Launch {
  readonly tag: HostTag;
  readonly number: number;
  readonly technique: 'tags' | 'bubblewrap';
  readonly sandbox: Sandbox | undefined;
  /** The folder of the host. */
  readonly folder: string;
  readonly output: OutputTap | undefined;
}

async function launch(
  command: ProcessCommand,
  { tag, number, technique, sandbox, folder, output }: Launch,
): Promise<{ child: ChildProcess; root: ProcessIdentity }> {
  const isFenced = technique === 'bubblewrap';
  const script = isFenced ? (sandbox?.script ?? '') + fenceScript(sandbox?.isOnline ? 3 : 2) : undefined;
  const argv = tagArguments(command.argv, { tag, command: number, script });
  const env = tagEnvironment(command.env, tag, number);
  const given = output?.stdio ?? command.stdio ?? 'ignore';
  const stdio = isFenced ? [...firstThree(given), 'ignore' as const, 'pipe' as const] : given;
  const entrance = sandbox?.enter({ argv, env, cwd: command.cwd, stdio, folder, gitMounts: command.gitMounts });
  const [file = '', ...args] = entrance?.argv ?? (isFenced ? fenceArguments(argv) : argv);
  const child = spawn(file, args, {
    ...(entrance === undefined && command.cwd !== undefined && { cwd: command.cwd }),
    // Give bubblewrap only the tags: commands can read its environment.
    env: entrance === undefined ? env : tagEnvironment({}, tag, number),
    // Its own session: no terminal, and a group that can be signalled in one step.
    detached: true,
    stdio: entrance?.stdio ?? stdio,
  });
  entrance?.[Symbol.dispose]();
  output?.attach(child);
  // Don't await before this: until the event loop turns, the child cannot be reaped and its pid cannot be reused.
  const root = child.pid === undefined ? undefined : identify(child.pid);
  if (root !== undefined) return { child, root };
  await waitForSpawn(child, command);
  throw new Error(`Could not start '${command.argv[0]}': the process table does not show it`);
}

interface Watched {
  readonly child: ChildProcess;
  readonly root: ProcessIdentity;
  readonly scope: Scope;
  readonly sweeper: Sweeper;
  readonly fence: KernelBoundary | undefined;
  readonly output: OutputTap | undefined;
  readonly graceMs: number;
}

function supervise(
  { child, root, scope, sweeper, fence, output, graceMs }: Watched,
  onEnd: (isProved: boolean) => void,
): ContainedProcess {
  const exited = waitForExit(child);
  const leftBehind = fence === undefined ? 0 : readReport(child);
  child.once('exit', sweeper.wake);
  sweeper.add(scope);
  async function end(method: 'ask' | 'kill'): Promise<CleanupReport> {
    // Read the output of killed processes later, so that it does not delay the kill.
    if (method === 'kill') output?.pause();
    const options = { graceMs: method === 'kill' ? 0 : graceMs, fence };
    const { verified, ended, survivors } = await sweeper.end(scope, options);
    sweeper.delete(scope);
    // It has ended. Wait until it is reaped.
    if (!survivors.some(({ pid }) => pid === root.pid)) await exited;
    output?.resume();
    onEnd(survivors.length === 0);
    // What the shell left behind has ended with it. What we saw before includes it.
    return toReport(verified, survivors.length > 0 ? ended : Math.max(ended, await leftBehind), survivors);
  }

  const endSince: ContainedProcess['endSince'] = async (moment, { except = [] } = {}) => {
    const part = narrowScope(scope, startedSince(moment, except));
    const { verified, ended, survivors } = await sweeper.end(part, { graceMs });
    return toReport(verified, ended, survivors);
  };

  return createHandle(child, { output, exited, end, shortenGrace: () => sweeper.shortenGrace(scope), endSince });
}
