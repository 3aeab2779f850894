// What the careful author of a tool does: run the command in a separate process group, and signal the whole group.
import { spawn } from 'node:child_process';

export function runCommand(command, signal) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const child = spawn('/bin/sh', ['-c', command], { detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
    const end = () => {
      process.kill(-child.pid, 'SIGKILL');
      reject(signal.reason);
    };
    let output = '';
    child.stdout.on('data', (text) => (output += text));
    child.on('error', reject);
    child.on('close', () => {
      signal?.removeEventListener('abort', end);
      resolve(output);
    });
    signal?.addEventListener('abort', end, { once: true });
  });
}
