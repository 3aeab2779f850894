// Pages and workers of the edge import most of the core. What needs Node is a separate entry, which they never load.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BuildResult, buildSync } from 'esbuild';
import { expect, test } from 'vitest';
import { ROOT } from './docs/pages.ts';

/** These need Node: the second compares values as Node's tests do. */
const FOR_NODE = ['@whoa/core/addresses', '@whoa/core/testing'];

const { exports } = JSON.parse(readFileSync(join(ROOT, 'packages/core/package.json'), 'utf8')) as { exports: object };
const entries = Object.keys(exports)
  .filter((entry) => entry !== './package.json')
  .map((entry) => `@whoa/core${entry.slice(1)}`);

const FOR_PAGES = [
  ...entries.filter((entry) => !FOR_NODE.includes(entry)),
  '@whoa/ai-sdk',
  '@whoa/server/client',
  '@whoa/server/task-client',
  '@whoa/server/transport',
];

/** Bundles as a page does: what needs Node cannot be found. */
function bundle(entry: string): BuildResult {
  return buildSync({
    stdin: { contents: `export * from '${entry}'`, resolveDir: join(ROOT, 'packages/server'), loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    conditions: ['@whoa/source'],
    external: ['react', 'ai', '@ai-sdk/*'],
    logLevel: 'silent',
  });
}

test.each(FOR_PAGES)('%s loads without Node', (entry) => {
  expect(bundle(entry).errors).toEqual([]);
});

test.each(FOR_NODE)('%s needs Node', (entry) => {
  expect(() => bundle(entry)).toThrow('Could not resolve "node:');
});
