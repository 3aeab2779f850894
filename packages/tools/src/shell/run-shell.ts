import type { CancellationToken } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';
import type { CleanupReport, ContainedProcess, EndOptions, ProcessExit } from '../process/containment/contained.ts';
import type { Containment } from '../process/containment/containment.ts';
import { Capture, type CapturedOutput } from '../process/output/capture.ts';
import { requireHelper } from '../process/programs.ts';
import { type GitCall, openGitCall } from '../sandbox/git-call.ts';

export interface ShellOptions {
  readonly containment: Containment;
  /** Runs a plain git command without a shell, with a writable `.git` in a sandbox. */
  readonly runsGit?: boolean | undefined;
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number | undefined;
  /** Keep the whole output in a file if it is too long. */
  readonly keepLog: boolean | { readonly folder: string };
  /** Called once, when the command has started. */
  readonly onStart?: ((live: LiveShell) => void) | undefined;
  /** Called from time to time with the output so far. */
  readonly onProgress?: ((output: CapturedOutput) => void) | undefined;
  readonly token: CancellationToken;
}

/** A running command. */
export interface LiveShell {
  readonly pid: number;
  read(): CapturedOutput;
}

/** How a command ended. No process of it runs any more, except the survivors in `cleanup`. */
export interface ShellResult {
  readonly exit: ProcessExit;
  /** What stopped it, if it did not end by itself. */
  readonly stopped: 'cancel' | 'timeout' | undefined;
  readonly output: CapturedOutput;
  readonly logPath: string | undefined;
  /** Why the log is incomplete, if it is. */
  readonly logProblem: string | undefined;
  readonly cleanup: CleanupReport;
  /** Files that git must not have made, and that are gone. */
  readonly removed: readonly string[];
  readonly durationMs: number;
}

/** How long processes may still print after the shell has ended, before they are ended too. */
const SETTLE_MS = 250;
/** The time limit for reading the last output after all processes have ended. */
const DRAIN_MS = 100;
const PROGRESS_MS = 100;

/** Runs a command until it ends, is cancelled or times out. Then ends all processes it started. */
export async function runShell(command: string, options: ShellOptions): Promise<ShellResult> {
  const { containment, token, timeoutMs } = options;
  token.throwIfCancelled();
  const startedAt = performance.now();
  const own = token.child({ name: 'shell', inheritFrom: 'abort' });
  if (timeoutMs !== undefined) own.cancelAfter(timeoutMs, { kind: 'deadline' }, { mode: 'now' });
  const capture = new Capture({ logFolder: findLogFolder(options) });
  const progress = createProgress(capture, options);
  let isKept = false;
  let git: GitCall | undefined;
  try {
    git = options.runsGit ? await openGitCall(command, containment) : undefined;
    const contained = await containment.start({
      argv: git?.argv ?? [requireHelper('bash'), '-c', command],
      gitMounts: git?.mounts,
      cwd: options.cwd,
      env: { ...options.env, ...git?.env },
      onOutput(chunk) {
        capture.push(chunk);
        progress.note();
      },
    });
    options.onStart?.({ pid: contained.pid, read: () => capture.read() });
    const { exit, cleanup } = await waitForEnd(contained, own);
    const output = capture.read();
    isKept = output.omittedBytes > 0;
    return {
      exit,
      stopped: own.isCancelled ? (token.isCancelled ? 'cancel' : 'timeout') : undefined,
      output,
      logPath: isKept ? capture.log?.path : undefined,
      logProblem: capture.log?.problem,
      cleanup,
      removed: git?.settle() ?? [],
      durationMs: Math.round(performance.now() - startedAt),
    };
  } finally {
    git?.settle();
    progress[Symbol.dispose]();
    own[Symbol.dispose]();
    if (isKept) capture.log?.close();
    else capture[Symbol.dispose]();
  }
}

function findLogFolder({ keepLog, containment }: ShellOptions): string | undefined {
  if (typeof keepLog === 'object') return keepLog.folder;
  return keepLog ? containment.folder() : undefined;
}

async function waitForEnd(
  contained: ContainedProcess,
  token: CancellationToken,
): Promise<{ exit: ProcessExit; cleanup: CleanupReport }> {
  const endings: Promise<CleanupReport>[] = [];
  const end = (options: EndOptions): void => {
    endings.push(contained.end(options));
  };
  // This also reports a cancel that came while the command was starting.
  const subscription = token.onCancel((level) => end({ method: level === 'kill' ? 'kill' : 'ask' }));
  try {
    const first = await waitUntilLevel(contained.exited, token, 'abort');
    // Process substitutions end after the shell and may still print.
    if (first.by === 'value') await waitUntilLevel(contained.output!.waitForEnd(SETTLE_MS), token, 'abort');
    if (endings.length === 0) end({ method: 'ask' });
    const cleanup = await endings[0]!;
    await contained.output!.finish(DRAIN_MS);
    const isUnknown = cleanup.survivorPids.includes(contained.pid);
    return { exit: isUnknown ? { code: null, signal: null } : await contained.exited, cleanup };
  } finally {
    subscription[Symbol.dispose]();
    contained.output?.[Symbol.dispose]();
  }
}

/** Limits the rate of progress messages. The last state is always reported. */
function createProgress(
  capture: Capture,
  { onProgress, token }: Pick<ShellOptions, 'onProgress' | 'token'>,
): Disposable & { note(): void } {
  let timer: Disposable | undefined;
  return {
    note() {
      if (onProgress === undefined || timer !== undefined) return;
      const notify = (): void => {
        timer = undefined;
        onProgress(capture.read());
      };
      timer = token.clock.setTimer(PROGRESS_MS, notify, { keepAlive: false });
    },
    [Symbol.dispose]: () => timer?.[Symbol.dispose](),
  };
}
