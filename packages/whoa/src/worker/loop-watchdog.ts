import { spawn } from 'node:child_process';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

const TICKS = 20;

/** Has this process killed when its event loop does not turn for so long. Dispose it when nothing is at stake any more. */
export function watchLoop(blockedMs: number): Disposable {
  const tickMs = Math.ceil(blockedMs / TICKS);
  const file = fileURLToPath(new URL(`./loop-watchdog-process${extname(import.meta.url)}`, import.meta.url));
  const watchdog = spawn(process.execPath, [file, `${process.pid}`, `${TICKS}`, `${tickMs}`], {
    // A session of its own, so that a signal to the group of the worker does not reach it.
    detached: true,
    cwd: '/',
    env: {},
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  const { stdin } = watchdog;
  stdin.on('error', () => {});
  const beat = setInterval(() => stdin.write('.'), tickMs);
  watchdog.on('exit', () => clearInterval(beat));
  for (const one of [watchdog, beat, stdin as unknown as NodeJS.RefCounted]) one.unref();
  return {
    [Symbol.dispose]() {
      clearInterval(beat);
      stdin.end();
    },
  };
}
