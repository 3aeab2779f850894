import { realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';

/** Resolves all links of a path, even if the last part does not exist yet. */
export function resolveRealPath(path: string, cwd: string): string {
  const whole = resolve(cwd, path);
  try {
    return realpathSync(whole);
  } catch {
    const parent = dirname(whole);
    return parent === whole ? whole : join(resolveRealPath(parent, cwd), basename(whole));
  }
}

/** Creates the test whether a real path matches a pattern. `*` matches a part of a name, `**` any folders. */
export function createPathTest(pattern: string, cwd: string): (path: string) => boolean {
  const fixed = fixedPart(pattern, cwd);
  if (!/[*?]/.test(pattern)) return (path) => path === fixed;
  const rest = pattern.slice(beforeStars(pattern).length).replace(/^\//, '');
  const expression = new RegExp(`^${literal(fixed === '/' ? '' : fixed)}/${toRegExpSource(rest)}$`, 's');
  return (path) => expression.test(path);
}

/** The real path of what stands before the first star of a pattern. */
export function fixedPart(pattern: string, cwd: string): string {
  const fixed = /[*?]/.test(pattern) ? beforeStars(pattern) || (pattern.startsWith('/') ? '/' : '.') : pattern;
  return resolveRealPath(expandHome(fixed), cwd);
}

export function expandHome(path: string): string {
  return /^~(?:\/|$)/.test(path) ? join(homedir(), path.slice(1)) : path;
}

function beforeStars(pattern: string): string {
  return /^[^*?]*(?=\/)/.exec(pattern)?.[0] ?? '';
}

function toRegExpSource(glob: string): string {
  return glob
    .split(/(\*\*\/|\*\*|\*|\?)/)
    .map((part) => SOURCES[part] ?? literal(part))
    .join('');
}

const SOURCES: Readonly<Record<string, string>> = { '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*', '?': '[^/]' };

function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}
