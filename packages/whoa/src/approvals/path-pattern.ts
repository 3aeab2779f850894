import { realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';

/** Resolves all links of a path, even if the last part does not exist yet. */
export function realPathOf(path: string, cwd: string): string {
  const whole = resolve(cwd, path);
  try {
    return realpathSync(whole);
  } catch {
    const parent = dirname(whole);
    return parent === whole ? whole : join(realPathOf(parent, cwd), basename(whole));
  }
}

/** Whether a real path matches a pattern. `*` matches a part of a name, `**` any folders. */
export function matchesPattern(path: string, pattern: string, cwd: string): boolean {
  const expanded = pattern.startsWith('~/') ? join(homedir(), pattern.slice(2)) : pattern;
  const beforeStars = /^[^*?]*(?=\/)/.exec(expanded)?.[0] ?? '';
  const fixed = realPathOf(
    /[*?]/.test(expanded) ? beforeStars || (expanded.startsWith('/') ? '/' : '.') : expanded,
    cwd,
  );
  if (!/[*?]/.test(expanded)) return path === fixed;
  const rest = expanded.slice(beforeStars.length).replace(/^\//, '');
  return new RegExp(`^${literal(fixed === '/' ? '' : fixed)}/${sourceOf(rest)}$`, 's').test(path);
}

function sourceOf(glob: string): string {
  return glob
    .split(/(\*\*\/|\*\*|\*|\?)/)
    .map((part) => SOURCES[part] ?? literal(part))
    .join('');
}

const SOURCES: Readonly<Record<string, string>> = { '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*', '?': '[^/]' };

function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}
