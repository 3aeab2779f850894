import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

/** A program of ours in a separate process. */
export interface Child extends AsyncDisposable {
  readonly process: ChildProcess;
  /** Its messages, in order. */
  readonly said: readonly unknown[];
  /** Resolves with the first message that matches, including earlier ones. Rejects if the process ends before. */
  hear<T>(wanted: (message: T) => boolean): Promise<T>;
  readonly ended: Promise<number | null>;
}

export interface ChildOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** A command that runs the program after it, for example in another namespace. */
  readonly inside?: readonly string[];
  /** It uses the packages that are installed next to it, not our sources. */
  readonly isInstalled?: boolean;
}

/** Starts a program of `children/`. It reads our sources, so it needs no build. */
export function startChild(name: string, args: readonly string[] = [], options: ChildOptions = {}): Child {
  return startProgram(join(import.meta.dirname, 'children', `${name}.ts`), args, options);
}

/** Starts a program that exchanges messages with its parent. */
export function startProgram(
  program: string,
  args: readonly string[] = [],
  { env = process.env, inside = [], isInstalled = false }: ChildOptions = {},
): Child {
  const [execPath, ...before] = [...inside, process.execPath];
  const child = fork(program, [...args], {
    env,
    execPath: execPath!,
    execArgv: [...before, ...(isInstalled ? ['--no-warnings'] : ['--conditions=@whoa/source'])],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const said: unknown[] = [];
  const listeners = new Set<(message: unknown) => void>();
  child.on('message', (message) => {
    said.push(message);
    for (const listener of listeners) listener(message);
  });
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  return {
    process: child,
    said,
    ended,
    hear: <T>(wanted: (message: T) => boolean) =>
      new Promise<T>((resolve, reject) => {
        const listener = (message: unknown): void => {
          if (!wanted(message as T)) return;
          listeners.delete(listener);
          resolve(message as T);
        };
        listeners.add(listener);
        for (const message of said) listener(message);
        ended.then((code) => reject(new Error(`${basename(program)} ended (${code}) without saying it`)), reject);
      }),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      await ended;
    },
  };
}

/** A folder that is removed on disposal. */
export function temporaryFolder(): Disposable & { readonly path: string; readonly file: string } {
  const path = mkdtempSync(join(tmpdir(), 'whoa-tasks-'));
  return {
    path,
    file: join(path, 'tasks.db'),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}
