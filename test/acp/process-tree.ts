// A tool for tests that starts a process tree and can prove it has ended it. Every process of the tree carries a tag in
// its environment; a guard outside the agent's process group ends the tagged processes when the agent itself is killed.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterruptedError, defineTool, type Tool } from '@whoa/core';
import type { InputSchema } from '@whoa/core/embed';

const TAG = 'WHOA_TEST_TREE';
const COMMAND = 'timeout 300 sleep 300 | tail & setsid sleep 300 & sleep 300 & echo started; wait';
const GUARD = `cat >/dev/null
while found=$(grep -lzx "${TAG}=$1" /proc/[0-9]*/environ 2>/dev/null); [ -n "$found" ]; do
  for path in $found; do pid=\${path#/proc/}; kill -s KILL "\${pid%/environ}" 2>/dev/null; done
done`;

export const anything: InputSchema = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) => ({ value }),
    jsonSchema: { input: () => ({ type: 'object' }) },
  },
};

/** The processes that carry a tag. */
export function findProcesses(tag: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => carriesTag(pid, tag));
}

function carriesTag(pid: number, tag: string): boolean {
  try {
    // A zombie has no environment left.
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`${TAG}=${tag}`);
  } catch {
    return false;
  }
}

/** Runs the tree until it is stopped. */
export function treeTool(tag: string): Tool {
  return defineTool({
    name: 'bash',
    description: 'Runs a process tree.',
    effects: 'read',
    inputSchema: anything,
    async execute(_input, { signal, token, update, defer }) {
      const guard = spawn('sh', ['-c', GUARD, 'guard', tag], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
      const child = spawn('bash', ['-c', COMMAND], {
        detached: true,
        env: { ...process.env, [TAG]: tag },
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      defer(() => endGuard(guard));
      const end = (): void => {
        for (let pids = findProcesses(tag); pids.length > 0; pids = findProcesses(tag)) {
          for (const pid of pids) endProcess(pid);
        }
      };
      signal.addEventListener('abort', end, { once: true });
      child.stdout.on('data', (text: Buffer) => update({ content: text.toString() }));
      await once(child, 'close');
      signal.removeEventListener('abort', end);
      if (signal.aborted)
        throw createInterruptedError(token, { content: 'started', details: { cleanup: { ended: 5, survivors: 0 } } });
      return 'it ended by itself';
    },
  });
}

async function endGuard(guard: ChildProcess): Promise<void> {
  guard.stdin?.end();
  if (guard.exitCode === null) await once(guard, 'exit');
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has already exited.
  }
}
