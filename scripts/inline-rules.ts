// The last step of a build: writes the rules in SQL files into the modules that read them, so that a built
// package reads no files when it runs, and a bundle is complete.
import { globSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Replaces every built module named `rule-files` with the values that its source exports.
 *
 * @returns The files that were written.
 */
export async function inlineRules(root: string): Promise<readonly string[]> {
  const sources = globSync('packages/*/src/**/rule-files.ts', { cwd: root }).sort();
  return Promise.all(sources.map((source) => inline(root, source)));
}

async function inline(root: string, source: string): Promise<string> {
  const exported = (await import(pathToFileURL(join(root, source)).href)) as Record<string, unknown>;
  const lines = Object.entries(exported).map(
    ([name, value]) => `export const ${name} = ${JSON.stringify(value, null, 2)};`,
  );
  const built = join(root, toBuiltModule(source));
  writeFileSync(built, `${lines.join('\n')}\n`);
  rmSync(`${built}.map`, { force: true });
  return built;
}

/** Returns the built file of a source. */
export function toBuiltModule(source: string): string {
  return source.replace('/src/', '/dist/').replace(/\.ts$/, '.js');
}

if (import.meta.main) await inlineRules(join(import.meta.dirname, '..'));
