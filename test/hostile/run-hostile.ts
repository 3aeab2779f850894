import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { HostileReport } from './campaign.ts';

/**
 * Runs `npm run long -- hostile` with these arguments, in a separate process, because it handles unhandled errors
 * itself.
 */
export function runHostile(...args: string[]): HostileReport {
  const program = join(import.meta.dirname, '../long/hostile.ts');
  const flags = ['--conditions=@whoa/source', '--no-warnings'];
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, program, ...args], { encoding: 'utf8' });
  return JSON.parse(stdout || JSON.stringify({ problems: [stderr] })) as HostileReport;
}
