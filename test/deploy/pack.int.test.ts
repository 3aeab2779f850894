// What `npm run pack` puts into a project is installed without asking a registry for one of our names.
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { addLocalPackages, checkLock, OUR_NAMES } from '../../scripts/local-packages.ts';
import { ROOT } from '../docs/pages.ts';
import { isNight } from '../night.ts';
import { temporaryFolder } from '../tasks/child.ts';

const run = promisify(execFile);

/** A registry without packages that records what it is asked for. */
async function startEmptyRegistry(): Promise<AsyncDisposable & { readonly url: string; readonly asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(decodeURIComponent(request.url!));
    response.writeHead(404).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

test.runIf(isNight)('a project with packed packages asks the registry for packages of others only', async () => {
  using folder = temporaryFolder();
  await using registry = await startEmptyRegistry();
  const cwd = join(folder.path, 'app');
  execFileSync('npm', ['run', '-s', 'pack', '--', cwd], { cwd: ROOT, stdio: 'ignore' });
  const args = ['install', '--package-lock-only', '--registry', registry.url, '--cache', join(folder.path, 'cache')];
  // It has nothing, so npm fails after it asked for everything.
  await expect(run('npm', args, { cwd })).rejects.toThrow('404');
  const asked = registry.asked.map((path) => path.slice(1));
  expect(asked).toEqual(expect.arrayContaining(['zod', 'hono', 'pg']));
  expect(asked.filter((name) => OUR_NAMES.includes(name))).toEqual([]);
});

test.runIf(isNight)('packages that were packed again replace those in the lock file and in node_modules', async () => {
  using folder = temporaryFolder();
  await using registry = await startEmptyRegistry();
  const cwd = join(folder.path, 'app');
  const npm = (...args: string[]): Promise<unknown> => run('npm', [...args, '--registry', registry.url], { cwd });
  mkdirSync(join(folder.path, 'older'));
  writeFileSync(join(folder.path, 'older/package.json'), '{ "name": "@whoa/core", "version": "0.1.0" }');
  mkdirSync(cwd);
  addLocalPackages(cwd, ['@whoa/core']);
  const { stdout } = (await npm('pack', join(folder.path, 'older'), '--pack-destination', folder.path)) as {
    stdout: string;
  };
  renameSync(join(folder.path, stdout.trim().split('\n').at(-1)!), join(cwd, 'whoa/whoa-core.tgz'));
  await npm('install');
  const hasCode = (): boolean => existsSync(join(cwd, 'node_modules/@whoa/core/dist'));
  expect(hasCode()).toBe(false);
  addLocalPackages(cwd);
  await npm('install');
  expect(hasCode()).toBe(true);
  await npm('ci');
  expect(hasCode()).toBe(true);
});

test('a lock file that takes one of our packages from a registry is rejected', () => {
  using folder = temporaryFolder();
  const file = join(folder.path, 'package-lock.json');
  const lock = (core: object): void =>
    writeFileSync(file, JSON.stringify({ packages: { '': {}, 'node_modules/a/node_modules/@whoa/core': core } }));
  lock({ resolved: 'file:whoa/whoa-core.tgz' });
  checkLock(file);
  for (const core of [{}, { resolved: 'https://registry.example.com/core.tgz' }]) {
    lock(core);
    expect(() => checkLock(file)).toThrow('takes node_modules/a/node_modules/@whoa/core from');
  }
});
