import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import type { AgentProcess } from '../adapter.ts';
import { within } from '../clock.ts';
import type { CheckHarness } from '../harness/check-harness.ts';

/** A command that starts an agent or a server. `{provider}`, `{folder}` and `{port}` are replaced in it. */
export interface AgentCommand {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>> | undefined;
}

export interface StartedProcess extends AgentProcess, AsyncDisposable {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
}

const MAX_COMPLAINTS = 4_000;
/** How long a process may take to end by itself when its input ends, and then when it is asked to. */
const GRACE_MS = 2_000;

/** Starts a command with the kit's model in its environment. */
export function startProcess(
  { command, env = {} }: AgentCommand,
  harness: CheckHarness,
  port?: number,
): StartedProcess {
  const fill = (text: string): string =>
    text
      .replaceAll('{provider}', harness.provider)
      .replaceAll('{folder}', harness.folder)
      .replaceAll('{port}', String(port ?? ''));
  const [file = '', ...args] = command.map(fill);
  const own = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, fill(value)]));
  const child = spawn(file, args, {
    cwd: harness.folder,
    env: { ...process.env, ...modelVariables(harness.provider), ...own },
    // A separate group, so that nothing of it is left when the kit ends it.
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stderrTail = '';
  child.stderr.on('data', (text: Buffer) => (stderrTail = (stderrTail + text.toString()).slice(-MAX_COMPLAINTS)));
  child.stdin.on('error', () => {});
  const exited = Promise.race([once(child, 'exit'), once(child, 'error')]).then(
    () => {},
    (error: Error) => {
      stderrTail += error.message;
    },
  );
  const hasExited = (): boolean => child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
  const kill = (signal: NodeJS.Signals): void => {
    if (!hasExited()) child.kill(signal);
  };
  return {
    child,
    exited,
    hasExited,
    stderrTail: () => stderrTail,
    endInput: () => child.stdin.end(),
    kill,
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      if (!(await within(GRACE_MS, exited))) kill('SIGTERM');
      if (!(await within(GRACE_MS, exited))) kill('SIGKILL');
      endGroup(child.pid);
      await exited;
      // Don't wait for pipes that an orphan of the agent still holds.
      child.stdout.destroy();
      child.stderr.destroy();
    },
  };
}

/** Starts a command and connects to it. If that fails, ends it and reports the end of its standard error. */
export async function connectProcess<T>(
  command: AgentCommand,
  harness: CheckHarness,
  connect: (process: StartedProcess) => Promise<T>,
): Promise<T> {
  const process = startProcess(command, harness);
  try {
    return await connect(process);
  } catch (error) {
    await process[Symbol.asyncDispose]();
    throw new Error(`${(error as Error).message}\n${process.stderrTail()}`.trim(), { cause: error });
  }
}

/** Where agents look for the address of their model. */
function modelVariables(provider: string): Record<string, string> {
  return {
    OPENAI_BASE_URL: provider,
    OPENAI_API_KEY: 'check',
    ANTHROPIC_BASE_URL: provider.replace(/\/v1$/, ''),
    ANTHROPIC_API_KEY: 'check',
    WHOA_MODEL: `compatible:${provider}:check`,
  };
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group is empty.
  }
}
