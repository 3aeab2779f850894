import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { requireHelper } from '../process/programs.ts';
import type { SandboxKind, SandboxOptions } from './options.ts';
import { createSandbox, type Sandbox } from './sandbox.ts';

export interface DetectedSandbox {
  readonly isAvailable: boolean;
  /** Why it is not available, for users. */
  readonly reason?: string;
}

const MAX_PROBE_MS = 10_000;
const MAX_REASON_CHARS = 1_000;

/**
 * Tries a sandbox once on this machine: that bubblewrap is installed does not mean that it works.
 *
 * @returns Whether it works, and why not.
 */
export async function detectSandbox(asked: SandboxKind | SandboxOptions): Promise<DetectedSandbox> {
  let folder: string | undefined;
  try {
    const sandbox = createSandbox(asked);
    if (sandbox === undefined) return { isAvailable: true };
    folder = mkdtempSync(join(tmpdir(), `whoa-probe-${process.pid}-`));
    await sandbox.open(folder);
    const reason = await probe(sandbox, folder);
    await sandbox[Symbol.asyncDispose]();
    return reason === undefined ? { isAvailable: true } : { isAvailable: false, reason };
  } catch (error) {
    return { isAvailable: false, reason: (error as Error).message };
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

/** Throws if the sandbox does not work here. Never fall back to a weaker one. */
export async function requireSandbox(sandbox: Sandbox, folder: string): Promise<void> {
  // What is wrong with the workspace itself, another bubblewrap would not cure.
  await sandbox.open(folder);
  const reason = await probe(sandbox, folder).catch((error: unknown) => (error as Error).message);
  if (reason === undefined) return;
  throw new Error(
    `The sandbox '${sandbox.kind}' does not work here: ${reason}. Install bubblewrap 0.8 or later (apt install bubblewrap) and ` +
      "allow user namespaces, or choose the sandbox 'none' deliberately",
  );
}

async function probe(sandbox: Sandbox, folder: string): Promise<string | undefined> {
  const argv = [requireHelper('true')];
  const entrance = sandbox.enter({ argv, env: {}, cwd: undefined, stdio: ['ignore', 'ignore', 'pipe'], folder });
  const [file = '', ...args] = entrance.argv;
  const child = spawn(file, args, { env: {}, stdio: entrance.stdio, timeout: MAX_PROBE_MS, killSignal: 'SIGKILL' });
  entrance[Symbol.dispose]();
  let output = '';
  child.stderr!.on('data', (chunk: Buffer) => (output = (output + chunk.toString()).slice(0, MAX_REASON_CHARS)));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return code === 0 ? undefined : output.trim().replaceAll('\n', '; ') || `bubblewrap ended with ${code}`;
}
