import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Observation } from '../core/repeat.ts';

/** A child that takes longer hangs, and that is its result. */
const LIMIT_MS = 600_000;
const TIMES = 3;

// Nothing may leave this machine: turn the libraries' telemetry off.
const QUIET = {
  OPENAI_AGENTS_DISABLE_TRACING: '1',
  OPENAI_API_KEY: 'none',
  MASTRA_TELEMETRY_DISABLED: '1',
  LANGCHAIN_TRACING_V2: 'false',
  LANGSMITH_TRACING: 'false',
  PI_OFFLINE: '1',
  DO_NOT_TRACK: '1',
};

/** Runs a scenario in a separate process and returns what was observed; a crash or a hang is an observation too. */
export async function observe(module: string, scenario: string): Promise<Observation> {
  const home = mkdtempSync(join(tmpdir(), 'whoa-peers-home-'));
  const args = ['--conditions=@whoa/source', '--no-warnings', join(import.meta.dirname, '../run-scenarios.ts')];
  const env = { ...process.env, ...QUIET, HOME: home, TMPDIR: home, PI_CODING_AGENT_DIR: join(home, 'pi') };
  const child = spawn(process.execPath, [...args, module, scenario, String(TIMES)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env,
    cwd: home,
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
  });
  let printed = '';
  let complaint = '';
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  rmSync(home, { recursive: true, force: true });
  if (code === 0) return JSON.parse(printed.trim().split('\n').at(-1) ?? '') as Observation;
  const seen =
    code === null ? `the process hung for ${LIMIT_MS / 1000} s` : `the process ended: ${lastError(complaint)}`;
  return { result: 'no', seen };
}

const lastError = (text: string): string => /^\s*(\w*Error.*)$/m.exec(text)?.[1]?.slice(0, 150) ?? 'without an error';
