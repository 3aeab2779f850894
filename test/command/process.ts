// The command as a long-running process that prints JSON.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { BIN, type Home } from './terminal.ts';

type Line = Readonly<Record<string, unknown>>;

export interface RunningCommand {
  readonly pid: number;
  readonly lines: readonly Line[];
  /** Its standard error so far. */
  readonly errors: () => string;
  readonly closed: Promise<[code: number | null, signal: NodeJS.Signals | null]>;
  /** Waits until a line has these fields; answers the line. */
  waitFor(fields: Line): Promise<Line>;
  kill(signal: NodeJS.Signals): void;
}

/** A test that runs concurrently must use its own `onTestFinished`. */
interface Test {
  readonly onEnd?: (cleanup: () => Promise<void>) => void;
}

/** Starts a command with `--json`. It is killed when the test has ended. */
export function startCommand(
  { folder, env, onEnd = onTestFinished }: Home & Test,
  args: readonly string[],
  more: Record<string, string> = {},
): RunningCommand {
  return startProcess([...BIN, ...args, '--json'], { onEnd, cwd: folder.path, env: { ...env, ...more } });
}

/** Starts a process that prints JSON. It is killed when the test has ended. */
export function startProcess(
  [file = '', ...args]: readonly string[],
  { cwd, env, onEnd = onTestFinished }: Test & { readonly cwd: string; readonly env: Record<string, string> },
): RunningCommand {
  const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const closed = once(child, 'close') as RunningCommand['closed'];
  onEnd(async () => {
    child.kill('SIGKILL');
    await closed;
  });
  const lines: Line[] = [];
  const waiting = new Set<() => void>();
  const wakeAll = (): void => {
    for (const wake of waiting) wake();
  };
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(JSON.parse(line) as Line);
    wakeAll();
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  let isClosed = false;
  child.once('close', () => {
    isClosed = true;
    wakeAll();
  });
  return {
    pid: child.pid!,
    lines,
    errors: () => errors,
    closed,
    kill: (signal) => void child.kill(signal),
    waitFor: (fields) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = lines.find((line) => Object.entries(fields).every(([name, value]) => line[name] === value));
          if (found === undefined && !isClosed) return;
          waiting.delete(look);
          if (found !== undefined) resolve(found);
          else reject(new Error(`it ended before ${JSON.stringify(fields)}: ${JSON.stringify(lines)}\n${errors}`));
        };
        waiting.add(look);
        look();
      }),
  };
}
