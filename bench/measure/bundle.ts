// The size of a page's script.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
// Not `build`: its service exits a little later than requested.
import { buildSync } from 'esbuild';

const ROOT = join(import.meta.dirname, '../..');
const NESTED = join(ROOT, 'node_modules/@ai-sdk/react/node_modules');

type Alias = Readonly<Record<string, string>>;

interface BundleOptions {
  readonly alias?: Alias;
  /** Our sources instead of the build. */
  readonly isSource?: boolean;
}

/** Returns what an application may have: one copy of `ai`, or also the one that `@ai-sdk/react` brings. */
export function findCopies(): readonly { readonly name: string; readonly alias: Alias }[] {
  const nested = ['ai', '@ai-sdk/provider-utils', '@ai-sdk/provider'].filter((name) => existsSync(join(NESTED, name)));
  const alias = Object.fromEntries(nested.map((name) => [name, join(NESTED, name)]));
  const one = { name: 'one copy of `ai`', alias };
  return nested.length === 0 ? [one] : [one, { name: 'two copies of `ai`', alias: {} }];
}

/** Returns the bytes of a page after gzip. */
export function measureBundle(contents: string, { alias = {}, isSource = false }: BundleOptions): number {
  const { outputFiles } = buildSync({
    stdin: { contents, resolveDir: ROOT, loader: 'ts' },
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    platform: 'browser',
    conditions: isSource ? ['@whoa/source'] : [],
    define: { 'process.env.NODE_ENV': '"production"' },
    external: ['react', 'react-dom', 'react/jsx-runtime'],
    alias: { ...alias },
    write: false,
  });
  return gzipSync(outputFiles[0]!.contents, { level: 9 }).length;
}
