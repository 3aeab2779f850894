import { CancellationToken, type StopHow } from '@whoa/core';
import type { CapturedOutput } from '../process/capture.ts';
import { GRACE_MS } from '../process/contained.ts';
import type { Containment } from '../process/containment.ts';
import { type LiveShell, runShell, type ShellEnd, type ShellOptions } from './run-shell.ts';

export interface BackgroundOptions {
  readonly containment: Containment;
  /** How many may run at a time; 16 unless said otherwise. */
  readonly processesMax?: number;
  /** Whose end is theirs too: the token of a run, for example. Without one they live until this is disposed. */
  readonly token?: CancellationToken;
}

/** What is known of a background process. */
export interface BackgroundProcess {
  readonly id: string;
  readonly pid: number;
  readonly command: string;
  readonly state: 'running' | 'ended';
  readonly output: CapturedOutput;
  /** There once it has ended. */
  readonly end?: ShellEnd;
}

/** Processes that outlive the call that started them, but never this owner. */
export interface BackgroundProcesses extends AsyncDisposable {
  start(command: string, options: Pick<ShellOptions, 'cwd' | 'env' | 'shell'>): Promise<BackgroundProcess>;
  /** Those that run, and the last ones that ended. */
  list(): readonly BackgroundProcess[];
  get(id: string): BackgroundProcess | undefined;
  /** Ends one and everything it started; `undefined` if there is none of that name. After its end it answers the same. */
  stop(id: string, options?: { readonly how?: StopHow }): Promise<ShellEnd | undefined>;
}

const PROCESSES_MAX = 16;
const ENDED_KEPT = 32;

interface Entry {
  readonly id: string;
  readonly command: string;
  readonly live: LiveShell;
  readonly token: CancellationToken;
  readonly run: Promise<ShellEnd>;
  end?: ShellEnd;
}

export function createBackgroundProcesses(options: BackgroundOptions): BackgroundProcesses {
  const { containment, processesMax = PROCESSES_MAX } = options;
  const entries = new Map<string, Entry>();
  const runs = new Set<Promise<ShellEnd>>();
  const owner = new CancellationToken({ parent: options.token, name: 'background', hears: 'abort' });
  let started = 0;
  let starting = 0;

  async function start(
    command: string,
    where: Pick<ShellOptions, 'cwd' | 'env' | 'shell'>,
  ): Promise<BackgroundProcess> {
    const running = [...entries.values()].filter((entry) => entry.end === undefined).length;
    if (running + starting >= processesMax) {
      throw new Error(`${processesMax} background processes run already; stop one first`);
    }
    const id = `bg${++started}`;
    const token = owner.child(id);
    starting++;
    try {
      const { promise, resolve } = Promise.withResolvers<LiveShell>();
      const run = runShell(command, {
        ...where,
        containment,
        timeoutMs: undefined,
        graceMs: GRACE_MS,
        keepLog: false,
        onStart: resolve,
        token,
      });
      runs.add(run);
      const forget = (): boolean => runs.delete(run);
      run.then(forget, forget);
      const live = await Promise.race([promise, run.then(() => promise)]);
      const entry: Entry = { id, command, live, token, run };
      entries.set(id, entry);
      run.then((end) => settle(entry, end)).catch(() => {});
      return view(entry);
    } catch (error) {
      token[Symbol.dispose]();
      throw error;
    } finally {
      starting--;
    }
  }

  function settle(entry: Entry, end: ShellEnd): void {
    entry.end = end;
    entry.token[Symbol.dispose]();
    const ended = [...entries.values()].filter((other) => other.end !== undefined);
    for (const old of ended.slice(0, -ENDED_KEPT)) entries.delete(old.id);
  }

  function find(id: string): BackgroundProcess | undefined {
    const entry = entries.get(id);
    return entry && view(entry);
  }

  return {
    start,
    list: () => [...entries.values()].map(view),
    get: find,
    async stop(id, { how = 'now' } = {}) {
      const entry = entries.get(id);
      entry?.token.cancel({ kind: 'user', message: 'stopped' }, { how });
      return entry?.run;
    },
    async [Symbol.asyncDispose]() {
      owner.cancel({ kind: 'parent', message: 'their owner ended' }, { how: 'now' });
      await Promise.allSettled(runs);
      owner[Symbol.dispose]();
    },
  };
}

function view({ id, command, live, end }: Entry): BackgroundProcess {
  const output = end?.output ?? live.read();
  const about = { id, pid: live.pid, command, output };
  return end === undefined ? { ...about, state: 'running' } : { ...about, state: 'ended', end };
}
