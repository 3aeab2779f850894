import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitAtMost } from '@whoa/core/internal';
import { Pipes } from '../fifo.ts';
import { type OutputTap, tapPipe, tapStreams } from '../output/output.ts';
import {
  type CleanupReport,
  type ContainedProcess,
  createHandle,
  GRACE_MS,
  OVER,
  type ProcessCommand,
  toReport,
  waitForExit,
  waitForSpawn,
} from './contained.ts';
import type { Containment } from './containment.ts';
import { requireTechnique } from './technique.ts';

type GroupTechnique = 'group' | 'taskkill';

/** How long the first process may take to end after KILL, and how long its group id is trusted after its end. */
const MAX_GONE_MS = 1_000;

/**
 * The containment for systems without `/proc`: a process group, or `taskkill` on Windows. It ends processes that stay in the
 * group. Those that leave it survive unseen, so it never reports `verified`.
 */
export function createGroupContainment(technique: GroupTechnique): Containment {
  const live = new Set<ContainedProcess>();
  let directory: { folder: string; pipes: Pipes } | undefined;
  let checked: Promise<void> | undefined;
  let isOver = false;

  function createHostDirectory(): { folder: string; pipes: Pipes } {
    if (isOver) throw new Error(OVER);
    const folder = directory?.folder ?? mkdtempSync(join(tmpdir(), `whoa-group-${process.pid}-`));
    return (directory ??= { folder, pipes: new Pipes(folder) });
  }

  async function tap({ onOutput }: ProcessCommand): Promise<OutputTap | undefined> {
    if (onOutput === undefined) return undefined;
    return technique === 'group' ? tapPipe(await createHostDirectory().pipes.open(), onOutput) : tapStreams(onOutput);
  }

  const check = (): Promise<void> => (checked ??= requireTechnique(technique));

  async function start(command: ProcessCommand): Promise<ContainedProcess> {
    await check();
    const [file, ...args] = command.argv;
    const output = await tap(command);
    try {
      // Check again: it may have been disposed while the pipe was created.
      if (isOver) throw new Error(OVER);
      const child = spawn(file, args, {
        ...(command.cwd !== undefined && { cwd: command.cwd }),
        env: command.env,
        // On Windows a detached child gets its own console window.
        detached: technique === 'group',
        stdio: output?.stdio ?? command.stdio ?? 'ignore',
        windowsHide: true,
      });
      output?.attach(child);
      await waitForSpawn(child, command);
      const contained = supervise(child, { technique, output, onEnd: () => live.delete(contained) });
      live.add(contained);
      return contained;
    } catch (error) {
      output?.[Symbol.dispose]();
      throw error;
    }
  }

  return {
    ready: async () => {
      await check();
      return technique;
    },
    hosts: [],
    sandbox: 'none',
    workspace: undefined,
    folder: () => createHostDirectory().folder,
    start,
    async [Symbol.asyncDispose]() {
      isOver = true;
      await Promise.all([...live].map((contained) => contained.end()));
      await directory?.pipes[Symbol.asyncDispose]();
      if (directory !== undefined) rmSync(directory.folder, { recursive: true, force: true });
    },
  };
}

function supervise(
  child: ChildProcess,
  { technique, output, onEnd }: { technique: GroupTechnique; output: OutputTap | undefined; onEnd: () => void },
): ContainedProcess {
  const pid = child.pid!;
  const exited = waitForExit(child);
  let exitedAt = Infinity;
  child.once('exit', () => (exitedAt = performance.now()));
  let shortenGrace: () => void = () => {};

  /** The id of an empty group may be reused by another one. */
  const signal = (name: NodeJS.Signals): void => {
    if (technique === 'group' && performance.now() < exitedAt + MAX_GONE_MS) signalGroup(pid, name);
  };

  async function end(method: 'ask' | 'kill'): Promise<CleanupReport> {
    const hurried = new Promise<void>((resolve) => {
      shortenGrace = resolve;
    });
    const ran = exitedAt === Infinity;
    if (method === 'ask') {
      signal('SIGTERM');
      signal('SIGCONT');
      await waitAtMost(Promise.race([exited, hurried]), GRACE_MS);
    }
    signal('SIGKILL');
    if (technique === 'taskkill' && exitedAt === Infinity) await killTree(pid);
    await waitAtMost(exited, MAX_GONE_MS);
    onEnd();
    return toReport('no', ran ? 1 : 0, exitedAt === Infinity ? [{ pid, startTime: 0 }] : []);
  }

  return createHandle(child, { output, exited, end, shortenGrace: () => shortenGrace() });
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is empty, or we may not signal its processes.
  }
}

/** Kills by parent pid, so call it before the first process has ended. */
async function killTree(pid: number): Promise<void> {
  const taskkill = join(process.env['SystemRoot'] ?? 'C:\\Windows', 'System32', 'taskkill.exe');
  await new Promise<void>((resolve) => {
    execFile(taskkill, ['/PID', `${pid}`, '/T', '/F'], { timeout: MAX_GONE_MS }, () => resolve());
  });
}
