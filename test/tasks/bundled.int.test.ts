// An application in one file, somewhere else: the stores' rules must be in it, not next to it.
import { spawnSync } from 'node:child_process';
import { buildSync } from 'esbuild';
import { expect, test } from 'vitest';
import { findUnbuilt } from '../../scripts/stale-build.ts';
import { ROOT } from '../docs/pages.ts';
import { borrowPostgres } from '../servers/borrow.ts';
import { createWorkspace } from '../workspace.ts';

const PROGRAM = `
import { createPostgresStore } from '@whoa/tasks/internal';
const store = createPostgresStore({ url: process.argv[2] });
const { result, task } = await store.create({ tenant: 'acme', agent: 'writer', input: 'hello' });
const found = await store.get({ tenant: 'acme', id: task.id });
console.log(result, found.status);
await store[Symbol.asyncDispose]();
`;

/** The bundle contains the build. During development it may be old; in CI it never is. */
const isBuilt = process.env['CI'] !== undefined || findUnbuilt(ROOT) === undefined;

test.runIf(isBuilt)('a store works in a bundle of one file in another folder', async () => {
  await using postgres = await borrowPostgres();
  using workspace = createWorkspace();
  buildSync({
    stdin: { contents: PROGRAM, resolveDir: ROOT },
    outfile: workspace.at('app.mjs'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    // Drivers that are CommonJS ask for parts of Node.
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    external: ['ioredis', 'pg-native', 'fast-check'],
    logLevel: 'silent',
  });
  const { stdout, stderr } = spawnSync(process.execPath, ['app.mjs', postgres.url], {
    cwd: workspace.path,
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect(stderr).toBe('');
  expect(stdout).toBe('created init\n');
});
