// Runs one task whose work is a separate process; reports its pid, and how the run ended.
import { type ChildProcess, spawn } from 'node:child_process';
import { createRunner } from '@whoa/tasks';
import { openStore } from '../open-store.ts';

const [file = '', id = '', leaseMs = ''] = process.argv.slice(2);
const store = openStore(file);
const runner = createRunner({
  store,
  worker: 'sleeper',
  leaseMs: Number(leaseMs),
  pollIntervalMs: 50,
  agents: {
    assistant: ({ signal, journal }) =>
      new Promise((_resolve, reject) => {
        const child: ChildProcess = spawn('sleep', ['1000'], { stdio: 'ignore' });
        process.send?.({ type: 'working', pid: child.pid });
        // A resumed worker keeps writing until it learns that it has lost the task.
        const writing = setInterval(() => {
          journal({ type: 'tick' }).catch(() => {});
        }, 20);
        signal.addEventListener('abort', () => {
          clearInterval(writing);
          child.once('exit', () => reject(new Error('stopped')));
          child.kill('SIGKILL');
        });
      }),
  },
});
let code: unknown;
try {
  await runner.runExisting({ tenant: 'acme', id });
} catch (error) {
  code = (error as { code?: unknown }).code;
}
await runner[Symbol.asyncDispose]();
await store[Symbol.asyncDispose]();
process.send?.({ type: 'ended', code }, () => process.disconnect());
