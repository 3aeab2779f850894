import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { requireSandbox } from '../../sandbox/detect.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { Pipes } from '../fifo.ts';
import { createHostDirectory, removeHostDirectory } from '../host-directory.ts';
import { identify, type ProcessIdentity } from '../identity/identity.ts';
import { readPidMoment } from '../identity/pid-clock.ts';
import { Scope } from '../identity/scope.ts';
import { createHostTag, type HostTag, tagArguments, tagEnvironment, tagKey } from '../identity/tags.ts';
import { endLeftovers } from '../leftovers.ts';
import { findWatchdog, Lifeline } from '../lifeline.ts';
import { type OutputTap, tapPipe } from '../output/output.ts';
import { Sweeper } from '../sweeper.ts';
import { findControlGroupRoot } from './cgroup-fence.ts';
import {
  type CleanupReport,
  type ContainedProcess,
  type EndOptions,
  graceOf,
  OVER,
  type ProcessCommand,
  reportOf,
  waitForExit,
  waitForSpawn,
} from './contained.ts';
import type { Containment } from './containment.ts';
import type { Fence } from './fence.ts';
import { createFence, requireTechnique, type Technique } from './technique.ts';

/** The resources of a containment, opened on first use. */
interface Host {
  readonly folder: string;
  readonly lifeline: Lifeline;
  readonly pipes: Pipes;
  readonly leftovers: Promise<unknown>;
}

/** The containment for Linux: tags, optionally with a fence. */
export function createTaggedContainment(
  technique: Technique,
  { sandbox, cgroupRoot }: { sandbox?: Sandbox; cgroupRoot?: string | undefined } = {},
): Containment {
  const tag = createHostTag();
  const sweeper = new Sweeper();
  const live = new Set<ContainedProcess>();
  let commands = 0;
  let host: Host | undefined;
  let checked: Promise<void> | undefined;
  let isOver = false;
  const cgroup = (): string => join(cgroupRoot ?? findControlGroupRoot(), `whoa-${tag.host}`);

  function openHost(): Host {
    if (isOver) throw new Error(OVER);
    if (host === undefined) {
      const watchdog = findWatchdog();
      const own = createHostDirectory({ tag, ...(technique === 'cgroup' && { cgroup: cgroup() }) });
      const leftovers = endLeftovers().catch((error: unknown) =>
        process.emitWarning(new Error('Could not end processes of an earlier host', { cause: error })),
      );
      host = { folder: own.folder, lifeline: new Lifeline(own, watchdog), pipes: new Pipes(own.folder), leftovers };
    }
    return host;
  }

  async function start(command: ProcessCommand): Promise<ContainedProcess> {
    if (sandbox !== undefined) await (checked ??= requireSandbox(sandbox, openHost().folder));
    else if (technique !== 'tags') await (checked ??= requireTechnique(technique));
    const output = command.onOutput && tapPipe(await openHost().pipes.open(), command.onOutput);
    const number = ++commands;
    let fence: Fence | undefined;
    try {
      fence = createFence(technique, technique === 'cgroup' ? join(cgroup(), `${number}`) : '');
      // Check again: it may have been disposed while the pipe was created.
      const { lifeline, folder } = openHost();
      // Read this before the start, so that no process is missed.
      const { forks, lastBefore } = readPidMoment();
      const { child, root } = await launch(command, { tag, number, fence, sandbox, folder, output });
      lifeline.add(root);
      const scope = new Scope(tagKey(tag, number), {
        roots: [root],
        since: root.startTime,
        born: { last: root.pid, forks, lastBefore },
        isHeld: () => child.exitCode === null && child.signalCode === null,
      });
      const contained = watchOver({ child, root, scope, sweeper, output, fence }, (isProved) => {
        live.delete(contained);
        if (isProved) lifeline.delete(root);
      });
      live.add(contained);
      return contained;
    } catch (error) {
      output?.[Symbol.dispose]();
      fence?.[Symbol.dispose]();
      throw error;
    }
  }

  return {
    technique,
    sandbox: sandbox?.kind ?? 'none',
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
  readonly fence: Fence | undefined;
  readonly sandbox: Sandbox | undefined;
  /** The folder of the host. */
  readonly folder: string;
  readonly output: OutputTap | undefined;
}

async function launch(
  command: ProcessCommand,
  { tag, number, fence, sandbox, folder, output }: Launch,
): Promise<{ child: ChildProcess; root: ProcessIdentity }> {
  const argv = tagArguments(command.argv, { tag, command: number, script: sandbox?.script });
  const env = tagEnvironment(command.env, tag, number);
  const stdio = output?.stdio ?? command.stdio ?? 'ignore';
  const entrance = sandbox?.enter({ argv, env, cwd: command.cwd, stdio, folder });
  const [file = '', ...args] = entrance?.argv ?? fence?.wrap(argv) ?? argv;
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
  readonly fence: Fence | undefined;
  readonly output: OutputTap | undefined;
}

function watchOver(
  { child, root, scope, sweeper, fence, output }: Watched,
  onEnd: (isProved: boolean) => void,
): ContainedProcess {
  const exited = waitForExit(child);
  child.once('exit', sweeper.wake);
  fence?.enter(root, exited);
  sweeper.add(scope);
  let ending: Promise<CleanupReport> | undefined;

  async function endOnce(graceMs: number): Promise<CleanupReport> {
    // Read the output of killed processes later, so that it does not delay the kill.
    if (graceMs === 0) output?.pause();
    const { verified, ended, survivors } = await sweeper.end(scope, { graceMs, fence });
    sweeper.delete(scope);
    // It has ended. Wait until it is reaped.
    if (!survivors.some(({ pid }) => pid === root.pid)) await exited;
    output?.resume();
    if (survivors.length === 0) fence?.[Symbol.dispose]();
    onEnd(survivors.length === 0);
    return reportOf(verified, ended, survivors);
  }

  return {
    pid: root.pid,
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: child.stderr,
    output,
    exited,
    end(options: EndOptions = {}) {
      const graceMs = graceOf(options);
      if (ending === undefined) return (ending = endOnce(graceMs));
      sweeper.hurry(scope, graceMs);
      return ending;
    },
    async [Symbol.asyncDispose]() {
      await this.end();
    },
  };
}
