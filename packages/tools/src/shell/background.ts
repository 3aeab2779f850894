import { CancellationToken, type StopMode } from '@whoa/core';
import type { WorkContext } from '@whoa/core/embed';
import { toPreset } from '@whoa/core/internal';
import type { Containment } from '../process/containment/containment.ts';
import type { CapturedOutput } from '../process/output/capture.ts';
import { type LiveShell, runShell, type ShellOptions, type ShellResult } from './run-shell.ts';

export interface BackgroundOptions {
  readonly containment: Containment;
  /** How many may run at a time. Defaults to 16. */
  readonly maxProcesses?: number | undefined;
  /** Cancelling it ends all processes: the token of a run, for example. Without one they run until this is disposed. */
  readonly token?: CancellationToken | undefined;
  /** Keeps each process for the task that starts it, so that any process can stop it: `createBackground` of `@whoa/tasks`. */
  readonly registry?: BackgroundRegistry | undefined;
}

/** Keeps work and its owner. Owners cannot see, read or stop the processes of others. */
interface BackgroundRegistry {
  owner(): string;
  start(work: (context: WorkContext) => Promise<unknown>, options: { readonly name: string }): Promise<unknown>;
}

/** A background process. */
export interface BackgroundProcess {
  readonly id: string;
  readonly pid: number;
  readonly command: string;
  readonly state: 'running' | 'ended';
  readonly output: CapturedOutput;
  /** Set once it has ended. */
  readonly end?: ShellResult;
}

/** Processes that outlive the call that started them, but not this object. */
export interface BackgroundProcesses extends AsyncDisposable {
  /** Starts a command that outlives its call. */
  start(command: string, options: Pick<ShellOptions, 'cwd' | 'env'>): Promise<BackgroundProcess>;
  /** Running processes and the last ones that ended. */
  list(): readonly BackgroundProcess[];
  /** Returns a process by its id, if it exists. */
  get(id: string): BackgroundProcess | undefined;
  /** Ends a process and all it started. Resolves with `undefined` if the id is unknown. Can be called again after the end. */
  stop(id: string, options?: { readonly mode?: StopMode }): Promise<ShellResult | undefined>;
}

const MAX_PROCESSES = 16;
const ENDED_KEPT = 32;

interface Entry {
  readonly id: string;
  readonly owner: string;
  readonly command: string;
  readonly live: LiveShell;
  readonly token: CancellationToken;
  readonly run: Promise<ShellResult>;
  end?: ShellResult;
}

/**
 * Creates a manager for processes that outlive the call that started them. Pass it to `createBashTool` and
 * `createBackgroundTools`.
 *
 * @returns The processes. Dispose it to end them all.
 * @throws Error, from `start`, when too many are running.
 */
export function createBackgroundProcesses(options: BackgroundOptions): BackgroundProcesses {
  const { containment, registry, maxProcesses = MAX_PROCESSES } = options;
  const ownerNow = (): string => registry?.owner() ?? '';
  const entries = new Map<string, Entry>();
  const runs = new Set<Promise<ShellResult>>();
  const owner = new CancellationToken({ parent: options.token, name: 'background', inheritFrom: 'abort' });
  let started = 0;
  let starting = 0;
  const mine = (): Entry[] => {
    const now = ownerNow();
    return [...entries.values()].filter((entry) => entry.owner === now);
  };

  async function start(command: string, where: Pick<ShellOptions, 'cwd' | 'env'>): Promise<BackgroundProcess> {
    const running = mine().filter((entry) => entry.end === undefined).length;
    if (running + starting >= maxProcesses) {
      throw new Error(`${maxProcesses} background processes are already running; stop one first`);
    }
    const id = `bg${++started}`;
    const token = owner.child(id);
    const whose = ownerNow();
    starting++;
    try {
      const launched = await launch(command, { ...where, containment, token, registry, runs });
      const entry: Entry = { id, owner: whose, command, token, ...launched };
      entries.set(id, entry);
      entry.run.then((end) => settle(entry, end)).catch(() => {});
      return view(entry);
    } catch (error) {
      token[Symbol.dispose]();
      throw error;
    } finally {
      starting--;
    }
  }

  function settle(entry: Entry, end: ShellResult): void {
    entry.end = end;
    entry.token[Symbol.dispose]();
    const ended = [...entries.values()].filter((other) => other.end !== undefined);
    for (const old of ended.slice(0, -ENDED_KEPT)) entries.delete(old.id);
  }

  const find = (id: string): Entry | undefined => mine().find((entry) => entry.id === id);

  return {
    start,
    list: () => mine().map(view),
    get(id) {
      const entry = find(id);
      return entry && view(entry);
    },
    async stop(id, { mode = 'now' } = {}) {
      const entry = find(id);
      entry?.token.cancel({ kind: 'user', message: 'stopped' }, { mode });
      return entry?.run;
    },
    async [Symbol.asyncDispose]() {
      owner.cancel({ kind: 'parent', message: 'their owner ended' }, { mode: 'now' });
      await Promise.allSettled(runs);
      owner[Symbol.dispose]();
    },
  };
}

interface LaunchOptions extends Pick<ShellOptions, 'cwd' | 'env' | 'containment' | 'token'> {
  readonly registry: BackgroundRegistry | undefined;
  /** Every process from its launch to its end. */
  readonly runs: Set<Promise<ShellResult>>;
}

/** Starts a process, with its keeper if there is one. Resolves when it runs. */
function launch(
  command: string,
  { registry, runs, ...shell }: LaunchOptions,
): Promise<{ readonly live: LiveShell; readonly run: Promise<ShellResult> }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ live: LiveShell; run: Promise<ShellResult> }>();
  const begin = (): Promise<ShellResult> => {
    const run = runShell(command, {
      ...shell,
      timeoutMs: undefined,
      keepLog: false,
      onStart: (live) => resolve({ live, run }),
    });
    runs.add(run);
    const forget = (): boolean => runs.delete(run);
    run.then(forget, forget);
    run.catch(reject);
    return run;
  };
  const began = registry?.start((context) => kept(begin, shell.token, context), { name: command }) ?? begin();
  return Promise.race([promise, began.then(() => promise)]);
}

/** Runs a process as work of its keeper. Either token stops it. */
async function kept(begin: () => Promise<ShellResult>, token: CancellationToken, context: WorkContext): Promise<void> {
  const stops = context.token.onCancel((level, reason) => token.cancel(reason, { mode: toPreset(level) }));
  const run = begin();
  // On a kill the keeper waits for this, so until all its processes have ended.
  context.defer(() => run.then(() => {}));
  await run.finally(() => stops[Symbol.dispose]());
}

function view({ id, command, live, end }: Entry): BackgroundProcess {
  const output = end?.output ?? live.read();
  const about = { id, pid: live.pid, command, output };
  return end === undefined ? { ...about, state: 'running' } : { ...about, state: 'ended', end };
}
