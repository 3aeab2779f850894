import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { requireHelper, tryProgram } from '../process/programs.ts';
import type { SandboxKind, SandboxOptions } from './options.ts';
import { createSandbox, type Sandbox } from './sandbox.ts';

export interface DetectedSandbox {
  readonly isAvailable: boolean;
  /** Why it is not available, for users. */
  readonly reason?: string;
}

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
    await probe(sandbox, folder);
    await sandbox[Symbol.asyncDispose]();
    return { isAvailable: true };
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
  await probe(sandbox, folder).catch((error: Error) => {
    throw new Error(
      `The sandbox '${sandbox.kind}' does not work here: ${error.message}. Install bubblewrap 0.8 or later (apt install bubblewrap) and ` +
        "allow user namespaces, or choose the sandbox 'none' deliberately",
    );
  });
}

async function probe(sandbox: Sandbox, folder: string): Promise<void> {
  const argv = [requireHelper('true')];
  const entrance = sandbox.enter({ argv, env: {}, cwd: undefined, stdio: ['ignore', 'ignore', 'pipe'], folder });
  const tried = tryProgram(entrance.argv, entrance.stdio);
  entrance[Symbol.dispose]();
  await tried;
}
