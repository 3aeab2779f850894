import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { join } from 'node:path';
import { requireSandbox } from '../../sandbox/detect.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { Pipes } from '../fifo.ts';
import { createHostDirectory, type HostRecord, removeHostDirectory } from '../host-directory.ts';
import { identify, type ProcessIdentity } from '../identity/identity.ts';
import { Scope } from '../identity/scope.ts';
import { createHostTag, type HostTag, tagArguments, tagEnvironment, tagKey } from '../identity/tags.ts';
import { endLeftovers } from '../leftovers.ts';
import { type OutputTap, tapPipe } from '../output/output.ts';
import { Sweeper } from '../sweeper.ts';
import { findWatchdog, WatchdogLink } from '../watchdog-link.ts';
import { Cgroup, enterArguments } from './cgroup.ts';
import { type ContainedProcess, firstThree, GRACE_MS, OVER, type ProcessCommand, waitForSpawn } from './contained.ts';
import type { Containment } from './containment.ts';
import { initArguments, type NamespaceProgram, namespaceArguments } from './namespace.ts';
import { supervise } from './supervise.ts';
import { chooseTechnique, findNamespaceProgram, type LinuxTechnique } from './technique.ts';

/** The resources of a containment, opened on first use. */
interface Host {
  readonly folder: string;
  readonly record: HostRecord;
  readonly lifeline: WatchdogLink;
  readonly pipes: Pipes;
  readonly leftovers: Promise<unknown>;
}

export interface LinuxOptions {
  /** Defaults to the best that changes nothing for commands. */
  readonly technique?: LinuxTechnique | undefined;
  readonly sandbox?: Sandbox | undefined;
  readonly graceMs?: number;
}

/** The containment for Linux. A sandbox creates the namespace itself. */
export function createLinuxContainment({ technique: asked, sandbox, graceMs = GRACE_MS }: LinuxOptions): Containment {
  const tag = createHostTag();
  const sweeper = new Sweeper();
  const live = new Set<ContainedProcess>();
  let commands = 0;
  let host: Host | undefined;
  let chosen: Promise<Chosen> | undefined;
  let isOver = false;

  function openHost(): Host {
    if (isOver) throw new Error(OVER);
    return (host ??= createHost(tag));
  }

  async function choose(): Promise<Chosen> {
    if (isOver) throw new Error(OVER);
    if (sandbox !== undefined) {
      await requireSandbox(sandbox, openHost().folder);
      return { technique: 'namespace', program: undefined };
    }
    const technique = await chooseTechnique(asked, openHost().record.cgroup);
    return { technique, program: technique === 'namespace' ? await findNamespaceProgram() : undefined };
  }

  async function start(command: ProcessCommand): Promise<ContainedProcess> {
    const how = await (chosen ??= choose());
    const output = command.onOutput && tapPipe(await openHost().pipes.open(), command.onOutput);
    const number = ++commands;
    let cgroup: Cgroup | undefined;
    try {
      // Check again: it may have been disposed while the pipe was created.
      const { lifeline, folder, record } = openHost();
      if (how.technique === 'cgroup') cgroup = new Cgroup(join(record.cgroup!, `${number}`));
      cgroup?.create();
      const { child, root } = await launch(command, { ...how, tag, number, sandbox, folder, output, cgroup });
      const guarded = { root, number };
      lifeline.add(guarded);
      const scope = createScope(tagKey(tag, number), child, root);
      const contained = supervise(
        { ...how, child, root, scope, sweeper, output, cgroup, graceMs, isOnline: sandbox?.isOnline ?? false },
        {
          onEnding: (withinMs) => lifeline.bound(guarded, withinMs),
          onEnd(isProved) {
            live.delete(contained);
            if (isProved) lifeline.delete(guarded);
          },
        },
      );
      live.add(contained);
      return contained;
    } catch (error) {
      output?.[Symbol.dispose]();
      cgroup?.remove();
      throw error;
    }
  }

  return {
    ready: async () => (await (chosen ??= choose())).technique,
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
      // The watchdog ends what is left, and removes the folder.
      await host?.lifeline[Symbol.asyncDispose]();
      if (host !== undefined) removeHostDirectory(host.folder);
    },
  };
}

function createHost(tag: HostTag): Host {
  const watchdog = findWatchdog();
  const own = createHostDirectory(tag);
  const leftovers = endLeftovers().catch((error: unknown) =>
    process.emitWarning(new Error('Could not end processes of an earlier host', { cause: error })),
  );
  return { ...own, lifeline: new WatchdogLink(own.folder, watchdog), pipes: new Pipes(own.folder), leftovers };
}

interface Chosen {
  readonly technique: LinuxTechnique;
  /** What creates namespaces; a sandbox does it itself. */
  readonly program: NamespaceProgram | undefined;
}

function createScope(key: string, child: ChildProcess, root: ProcessIdentity): Scope {
  return new Scope(key, {
    roots: [root],
    since: root.startTime,
    isHeld: () => child.exitCode === null && child.signalCode === null,
  });
}

interface Launch extends Chosen {
  readonly tag: HostTag;
  readonly number: number;
  readonly sandbox: Sandbox | undefined;
  /** The folder of the host. */
  readonly folder: string;
  readonly output: OutputTap | undefined;
  readonly cgroup: Cgroup | undefined;
}

async function launch(command: ProcessCommand, how: Launch): Promise<{ child: ChildProcess; root: ProcessIdentity }> {
  const { tag, number, sandbox, folder, output, cgroup } = how;
  const given = output?.stdio ?? command.stdio ?? 'ignore';
  const env = tagEnvironment(command.env, tag, number);
  const entrance = sandbox?.enter({ ...command, cwd: command.cwd, env, stdio: given, folder });
  const descriptor = cgroup?.openEntrance();
  let child: ChildProcess;
  try {
    const [file = '', ...args] = entrance?.argv ?? wrap(command.argv, how);
    child = spawn(file, args, {
      ...(entrance === undefined && command.cwd !== undefined && { cwd: command.cwd }),
      // Give bubblewrap only the tags: commands can read its environment.
      env: entrance === undefined ? env : tagEnvironment({}, tag, number),
      // Its own session: no terminal, and a group that can be signalled in one step.
      detached: true,
      stdio: entrance?.stdio ?? addDescriptors(given, how.technique, descriptor),
    });
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
    entrance?.[Symbol.dispose]();
  }
  output?.attach(child);
  // Don't await before this: until the event loop turns, the child cannot be reaped and its pid cannot be reused.
  const root = child.pid === undefined ? undefined : identify(child.pid);
  if (root !== undefined) return { child, root };
  await waitForSpawn(child, command);
  throw new Error(`Could not start '${command.argv[0]}': the process table does not show it`);
}

function wrap(argv: readonly string[], { technique, program, tag, number }: Launch): readonly string[] {
  if (technique === 'cgroup') return enterArguments(argv);
  if (program !== undefined) return namespaceArguments(program, initArguments(argv));
  return tagArguments(argv, { tag, command: number });
}

/** Descriptors for our shell: the entrance of a cgroup, or a pipe for the report. */
function addDescriptors(given: StdioOptions, technique: LinuxTechnique, entrance: number | undefined): StdioOptions {
  if (technique === 'tags') return given;
  return [...firstThree(given), ...(entrance === undefined ? (['ignore', 'pipe'] as const) : [entrance])];
}
