import { existsSync } from 'node:fs';
import { isNight } from '../night.ts';

const SHELL = '/usr/bin/chromium-headless-shell';
const WHOLE = ['/usr/bin/chromium', '/usr/bin/chromium-browser'];

/**
 * The program of the browser. A page opens with a sixth of the CPU time in the one without windows; the night uses the whole
 * one.
 */
export function findChromium(): string {
  const found = (isNight ? [...WHOLE, SHELL] : [SHELL, ...WHOLE]).find((path) => existsSync(path));
  if (found === undefined) throw new Error('there is no chromium; install the package `chromium-headless-shell`');
  return found;
}
