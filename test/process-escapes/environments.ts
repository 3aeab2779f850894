import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Cell } from './table.ts';

/** The user who runs the commands, and the namespace. */
export interface Environment {
  readonly name: string;
  /** The command that starts a program there. */
  readonly argv: readonly string[];
}

const AS_NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', 'env', 'HOME=/nonexistent'];
// A shell as the first process there: it takes in orphans, which Node does not.
const INSIDE = ['--pid', '--fork', '--kill-child', '--mount-proc', '--', '/bin/sh', '-c', '"$@"; exit $?', 'init'];

/** Root and `nobody` where this runs as root, this user otherwise; each here and in a separate PID namespace. */
export const ENVIRONMENTS: readonly Environment[] =
  process.getuid?.() === 0
    ? [
        { name: 'root', argv: [] },
        { name: 'nobody', argv: AS_NOBODY },
        { name: 'root, inside another PID namespace', argv: ['unshare', ...INSIDE] },
        { name: 'nobody, inside another PID namespace', argv: ['unshare', ...INSIDE, ...AS_NOBODY] },
      ]
    : [
        { name: 'user', argv: [] },
        { name: 'user, inside another PID namespace', argv: ['unshare', '--user', '--map-current-user', ...INSIDE] },
      ];

/** Runs every escape against every containment there. */
export async function runIn({ name, argv }: Environment, rounds: number): Promise<readonly Cell[]> {
  const program = [
    process.execPath,
    '--conditions=@whoa/source',
    '--no-warnings',
    join(import.meta.dirname, 'run-all.ts'),
  ];
  const [file, ...args] = [...argv, ...program, `${rounds}`];
  const child = spawn(file, args, { cwd: '/', stdio: ['ignore', 'pipe', 'inherit'] });
  const said = await text(child.stdout);
  if (!said.startsWith('[')) throw new Error(`process-escapes: nothing ran as ${name}`);
  return JSON.parse(said) as readonly Cell[];
}
