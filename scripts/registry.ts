// A registry on loopback that serves the packed packages, and everything else from the registry that npm is configured with.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const VERSION = '6.10.4';
const START_MS = 120_000;
const POLL_INTERVAL_MS = 200;
const root = join(import.meta.dirname, '..');

export interface Registry extends AsyncDisposable {
  readonly url: string;
  /** Publishes a packed package. */
  publish(tarball: string): void;
}

/** Starts a registry that keeps its packages in a folder. It is installed on first use. */
export async function startRegistry(folder: string): Promise<Registry> {
  const program = install();
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}/`;
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'config.yaml');
  writeFileSync(file, JSON.stringify(toConfiguration(folder)));
  const child = spawn(process.execPath, [program, '--config', file, '--listen', `127.0.0.1:${port}`], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(child, 'exit');
  const until = Date.now() + START_MS;
  for (;;) {
    const isUp = await fetch(new URL('-/ping', url)).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isUp) break;
    if (child.exitCode !== null || Date.now() > until) throw new Error('registry: verdaccio did not start');
    await wait(POLL_INTERVAL_MS);
  }
  return {
    url,
    publish(tarball) {
      // Anyone may publish here, but npm requires a token.
      const login = `--//127.0.0.1:${port}/:_authToken=none`;
      execFileSync('npm', ['publish', tarball, '--registry', url, login, '--provenance=false', '--tag', 'latest'], {
        stdio: ['ignore', 'ignore', 'inherit'],
      });
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

function install(): string {
  const folder = join(root, '.cache/registry');
  const program = join(folder, 'node_modules/verdaccio/bin/verdaccio');
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  // It requests a dist-tag of node-fetch, which not every registry serves.
  const manifest = { private: true, dependencies: { verdaccio: VERSION }, overrides: { 'node-fetch': '2.7.0' } };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: folder, stdio: 'inherit' });
  return program;
}

function toConfiguration(folder: string): object {
  const uplink = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim();
  const own = { access: '$all', publish: '$all' };
  return {
    storage: join(folder, 'storage'),
    uplinks: { upstream: { url: uplink, timeout: '60s', maxage: '1h' } },
    packages: { '@whoa/*': own, whoa: own, '**': { access: '$all', proxy: 'upstream' } },
    log: { type: 'stderr', level: 'fatal' },
    max_body_size: '50mb',
  };
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
