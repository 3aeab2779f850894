import { spawn } from 'node:child_process';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

const TICKS = 20;

/** Starts a process that kills this one when its event loop is blocked for `blockedMs`. Dispose it to end the watchdog. */
export function watchLoop(blockedMs: number): Disposable {
  const tickMs = Math.ceil(blockedMs / TICKS);
  const file = fileURLToPath(new URL(`./loop-watchdog-process${extname(import.meta.url)}`, import.meta.url));
  const watchdog = spawn(process.execPath, [file, `${process.pid}`, `${TICKS}`, `${tickMs}`], {
    // In its own session, so that a signal to the worker's process group does not reach it.
    detached: true,
    cwd: '/',
    env: { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
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
