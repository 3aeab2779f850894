import { readdirSync, readFileSync } from 'node:fs';
import { type CallResult, CancellationToken, createRuntime, toText } from '@whoa/core';
import { type Containment, createBashTool } from '@whoa/tools';
import type { EscapeKind } from './escapes.ts';

/** The results of one round. */
export interface Round {
  readonly survivors: number;
  /** How many of them the report names. */
  readonly reported: number;
  readonly zombies: number;
  /** From the cancel, or from the start where the shell returns by itself, to the result. */
  readonly ms: number;
  readonly verified: string;
  readonly text: string;
}

const MAX_UP_MS = 20_000;
let rounds = 0;

/**
 * Runs an escape, stops it, and counts the survivors right away: by their arguments, not by what the containment
 * reports.
 */
export async function runRound(escapeKind: EscapeKind, containment: Containment): Promise<Round> {
  const mark = `300.${process.pid}${String(++rounds).padStart(5, '0')}`;
  const zombiesBefore = findZombies();
  const runtime = createRuntime({ tools: [createBashTool({ containment })] });
  const token = new CancellationToken({ name: escapeKind.name });
  let startedAt = performance.now();
  const running = runtime.execute([{ id: 'escape', tool: 'bash', input: { command: escapeKind.command(mark) } }], {
    token,
  });
  const settled = running.catch((error: { partial: readonly CallResult[] }) => error.partial);
  if (!escapeKind.returns) {
    await waitUntilUp(escapeKind, mark);
    startedAt = performance.now();
    token.cancel({ kind: 'user' }, { mode: 'now' });
  }
  const [result] = (await settled) as readonly CallResult[];
  const ms = performance.now() - startedAt;
  // Three scans: one alone may miss a process that forks and exits.
  const left = new Set([...findMarked(mark), ...findMarked(mark), ...findMarked(mark)]);
  for (const pid of left) killIfThere(pid);
  const { cleanup } = result!.details as { cleanup: { verified: string; survivors: number } };
  token[Symbol.dispose]();
  return {
    survivors: left.size,
    reported: cleanup.survivors,
    zombies: findZombies().filter((pid) => !zombiesBefore.includes(pid)).length,
    ms,
    verified: cleanup.verified,
    text: toText(result!.content),
  };
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has already exited.
  }
}

async function waitUntilUp({ name, processes, upWith = [] }: EscapeKind, mark: string): Promise<void> {
  const until = performance.now() + MAX_UP_MS;
  while (true) {
    const commands = findMarked(mark).map((pid) => readCommand(pid).split('\0'));
    const hasAll = upWith.every((word) => commands.some((command) => command.includes(word)));
    if (commands.length >= processes && hasAll) return;
    if (performance.now() > until)
      throw new Error(`process-escapes: '${name}' did not come up: ${commands.length} of ${processes}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** The pids with the mark among their arguments. */
export function findMarked(mark: string): number[] {
  return readdirSync('/proc')
    .reverse()
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid && readCommand(pid).includes(mark));
}

function readCommand(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
}

function findZombies(): string[] {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'latin1').split(' ').filter(Boolean);
  return children.filter((pid) => / Z /.test(readStat(pid)));
}

function readStat(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return '';
  }
}
