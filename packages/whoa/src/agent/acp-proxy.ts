import { accessSync, appendFileSync, constants, statSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';
import { type ProxiedAgent, type ProxyEvent, proxyAcp } from '@whoa/acp/proxy';
import { describeError } from '@whoa/core/internal';
import type { SandboxOptions } from '@whoa/tools';
import { createContainment } from '@whoa/tools/containment/internal';
import { readDuration, UsageError, type Use } from '../command.ts';
import type { System } from '../system.ts';
import { rendered } from '../terminal/boundary.ts';
import { explainWaiting } from '../terminal/explain-waiting.ts';
import { listenForEnd } from '../terminal/interrupts.ts';
import type { AcpValues } from './agent-options.ts';

/** Stands between an editor and the agent that a command starts. Returns the exit code. */
export async function runProxy(
  command: readonly string[],
  { values, own, system }: { readonly values: AcpValues; readonly own: Use; readonly system: System },
): Promise<number> {
  const [file, ...rest] = command;
  if (!file) throw new UsageError('expected a command after --, for example: whoa acp -- opencode acp');
  for (const name of ['model', 'agent', 'config', 'yes'] as const)
    if (values[name]) throw new UsageError(`--${name}: cannot be combined with a command, which has its own`);
  const waitMs = values.wait === undefined ? undefined : readDuration('--wait', values.wait);
  const log = values.log === undefined ? undefined : resolve(system.cwd(), values.log);
  const { sandbox, env } = readSandbox(values, system);
  checkProgram(file, system);
  if (sandbox.kind !== 'none') {
    const { isAvailable, reason } = await (await import('@whoa/tools')).detectSandbox(sandbox);
    if (!isAvailable) throw new UsageError(`--sandbox ${sandbox.kind} does not work here: ${reason}`, 'SANDBOX');
  }
  const containment = own(createContainment({ sandbox, isolate: values.isolate }));
  const start = async (): Promise<ProxiedAgent> => {
    const agent = await containment.start({
      argv: [file, ...rest],
      cwd: system.cwd(),
      env,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    return { ...agent, stdin: agent.stdin!, stdout: agent.stdout! };
  };
  const keep = (line: string): void => {
    if (log === undefined) return;
    try {
      appendFileSync(log, line, { mode: 0o600 });
    } catch (error) {
      // A full disk must not keep an agent from being stopped.
      system.stderr.write(`${rendered(`whoa acp: --log: ${describeError(error)}`)}\n`);
    }
  };
  // A path that cannot be written is reported at the start.
  if (log !== undefined) appendFileSync(log, '', { mode: 0o600 });
  const onEvent = (event: ProxyEvent): void => {
    keep(`${JSON.stringify({ at: Date.now(), ...event })}\n`);
    const line = describeEvent(event);
    if (line !== undefined) system.stderr.write(`${rendered(`whoa acp: ${line}`)}\n`);
  };
  const proxy = own(proxyAcp({ start, onEvent, ...(waitMs !== undefined && { waitMs }) }));
  explainWaiting('acp');
  own(listenForEnd(({ via }) => proxy.close(via ?? 'signal')));
  const { code } = await proxy.closed;
  if (code === NOT_FOUND && sandbox.kind !== 'none')
    system.stderr.write(
      `whoa acp: if '${rendered(file)}' is not visible in the sandbox, add --readable FOLDER for where it is installed\n`,
    );
  return code;
}

/** Says what is wrong with a program before a shell does, which names neither us nor a remedy. */
function checkProgram(file: string, { cwd, env }: System): void {
  if (process.platform === 'win32') return;
  const isPath = file.includes('/');
  const folders = isPath ? [''] : (env['PATH'] ?? '').split(delimiter);
  const found = folders.map((folder) => resolve(cwd(), folder, file)).map(toFault);
  if (found.includes(undefined)) return;
  const fault = found.find((one) => one !== 'missing');
  if (fault === 'folder') throw new UsageError(`'${file}' is a folder; give the path of the agent's program`);
  if (fault === 'not-executable')
    throw new UsageError(
      `'${file}' is not executable; run: chmod +x ${file}, or start it with its interpreter, for example: node ${file}`,
    );
  if (isPath) throw new UsageError(`there is no file '${file}'; check the path of the agent's program`);
  throw new UsageError(
    `there is no program '${file}' in PATH; install the agent, or give the full path of its program`,
  );
}

/** Why a file cannot be run; `undefined` if it can. */
function toFault(path: string): 'missing' | 'folder' | 'not-executable' | undefined {
  try {
    if (statSync(path).isDirectory()) return 'folder';
    accessSync(path, constants.X_OK);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? 'not-executable' : 'missing';
  }
}

/** The exit code of a shell that found no such program. */
const NOT_FOUND = 127;

/** What an agent in a sandbox gets of the environment without being asked for. */
const HARMLESS = ['PATH', 'LANG', 'LC_ALL', 'TERM', 'TZ'];

/** Without a sandbox the agent gets the whole environment, as from the editor; in one, only what the user names. */
function readSandbox(
  { sandbox: kind = 'none', folder = [], readable = [], key = [], host = [] }: AcpValues,
  { env, cwd }: System,
): { readonly sandbox: SandboxOptions; readonly env: Readonly<Record<string, string>> } {
  const isNamed = [folder, readable, key, host].some((list) => list.length > 0);
  if (kind === 'none' && isNamed) throw new UsageError('--folder, --readable, --key and --host need --sandbox');
  const missing = key.find((name) => env[name] === undefined);
  if (missing !== undefined) throw new UsageError(`--key ${missing}: this variable is not set`);
  const names = kind === 'none' ? Object.keys(env) : [...HARMLESS, ...key];
  const given = names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]));
  const network = host.length === 0 ? {} : { network: { allow: host } };
  const inFull = (path: string): string => resolve(cwd(), path);
  const mounts = { writable: folder.map(inFull), readable: readable.map(inFull) };
  const sandbox = { kind, workspace: cwd(), ...mounts, ...network };
  return { sandbox, env: Object.fromEntries(given) as Record<string, string> };
}

const ANSWERS = {
  cancelled: 'the agent stopped',
  'other-answer': 'the agent answered as if it had not been cancelled',
  error: 'the agent answered with an error',
  'answered-for': 'the agent did not answer and was answered for',
  exited: 'the agent exited',
} as const;

/** One line for a person. */
function describeEvent(event: ProxyEvent): string | undefined {
  switch (event.type) {
    case 'stop': {
      const { by, agent, ms, closedCalls, closedQuestions, processes } = event;
      const left = processes === undefined ? undefined : processes.survivors;
      const parts = [
        `${by}: ${ANSWERS[agent]} after ${ms} ms`,
        closedCalls > 0 && `calls closed: ${closedCalls}`,
        closedQuestions > 0 && `questions withdrawn: ${closedQuestions}`,
        processes === undefined ? 'processes not ended: other prompts run' : `processes ended: ${processes.ended}`,
        left !== undefined && left > 0 && `still running: ${left}`,
        processes?.shared !== undefined && `left alone, because they may be of another prompt: ${processes.shared}`,
      ];
      return parts.filter((part) => part !== false).join('; ');
    }
    case 'restart':
      return `the agent is started again: ${event.why}`;
    case 'restore':
      return event.mode === 'new' ? 'a session started again without its memory' : 'a session was loaded again';
    case 'problem':
      return event.message;
    case 'end': {
      const { by, processes } = event;
      if (processes.survivors > 0) return `processes that could not be ended: ${processes.survivors}`;
      return by === 'agent-exit' ? 'the agent exited' : undefined;
    }
  }
}
