import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** As much of pi's bash tool as is measured. */
export interface PiBashTool {
  execute(id: string, input: { command: string }, signal: AbortSignal): Promise<unknown>;
}

const VERSION = '1.5.0';

/** pi's bash tool, fetched into `.cache` on first use; a string says why it is not available. */
export async function loadPiBashTool(cwd: string): Promise<PiBashTool | string> {
  const folder = join(import.meta.dirname, '../../.cache/peers', `pi-${VERSION}`);
  // Its package does not install everywhere, but holds one file with everything in it.
  const bundle = join(folder, 'package/dist/bundle/index.js');
  if (!existsSync(bundle)) {
    mkdirSync(folder, { recursive: true });
    const name = `@earendil-works/pi-coding-agent@${VERSION}`;
    const packed = spawnSync('npm', ['pack', '--silent', name], { cwd: folder, encoding: 'utf8', timeout: 60_000 });
    const file = packed.stdout.trim().split('\n').at(-1);
    if (packed.status !== 0 || !file) return `could not be fetched: ${packed.stderr.trim().split('\n').at(-1)}`;
    const unpacked = spawnSync('tar', ['-xzf', file], { cwd: folder, timeout: 60_000 });
    if (unpacked.status !== 0) return 'could not be unpacked';
  }
  try {
    const pi = (await import(bundle)) as { createBashTool(cwd: string): PiBashTool };
    return pi.createBashTool(cwd);
  } catch (error) {
    return `could not be loaded: ${(error as Error).message}`;
  }
}
