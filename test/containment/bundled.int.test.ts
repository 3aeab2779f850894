import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { rolldown } from 'rolldown';
import { expect, onTestFinished, test } from 'vitest';
import { findMarked } from '../process-escapes/round.ts';
import { createWorkspace } from '../workspace.ts';

const SAY = join(import.meta.dirname, 'say-cleanup.ts');
const HOST = join(import.meta.dirname, '../host-death/host.ts');
const WATCHDOG = join(import.meta.dirname, '../../packages/tools/src/watchdog/index.ts');
const conditions = ['@whoa/source'];
const external = ['@vscode/ripgrep', '@modelcontextprotocol/client'];

type Bundle = (entries: Record<string, string>, folder: string) => unknown;

const BUNDLERS: Readonly<Record<string, Bundle>> = {
  esbuild: (entryPoints, outdir) =>
    buildSync({
      entryPoints,
      outdir,
      external,
      conditions,
      bundle: true,
      platform: 'node',
      format: 'esm',
      outExtension: { '.js': '.mjs' },
      logLevel: 'silent',
    }),
  async rolldown(input, dir) {
    const bundle = await rolldown({
      input,
      external,
      platform: 'node',
      resolve: { conditionNames: [...conditions, 'import'] },
    });
    await bundle.write({ dir, format: 'esm', entryFileNames: '[name].mjs', chunkFileNames: '[name].mjs' });
    await bundle.close();
  },
};

test.each(Object.keys(BUNDLERS))(
  '%s: a bundle without the watchdog fails to start a command, with what to do',
  async (name) => {
    using workspace = createWorkspace();
    await BUNDLERS[name]!({ host: SAY }, workspace.path);
    const { status, stderr } = spawnSync(process.execPath, [workspace.at('host.mjs'), 'true', 'tags'], {
      encoding: 'utf8',
    });
    expect(stderr).toMatch(
      /The watchdog is missing: there is no .*watchdog\.mjs.*keep '@whoa\/tools' external, or bundle/s,
    );
    expect(status).not.toBe(0);
  },
);

test.each(Object.keys(BUNDLERS))(
  '%s: a bundle with the watchdog as a second entry leaves nothing when it is killed',
  async (name) => {
    using workspace = createWorkspace();
    await BUNDLERS[name]!({ host: HOST, watchdog: WATCHDOG }, workspace.path);
    const mark = `304.${process.pid}${name.length}`;
    const host = spawn(process.execPath, [workspace.at('host.mjs'), 'wait', `setsid sleep ${mark} & wait`], {
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    onTestFinished(() => void host.kill('SIGKILL'));
    await expect.poll(() => findMarked(mark).length).toBeGreaterThanOrEqual(3);
    host.kill('SIGKILL');
    await expect.poll(() => findMarked(mark).length).toBe(0);
  },
);

test.runIf(process.platform === 'linux')(
  'a command in a sandbox cannot change our own code in node_modules',
  async () => {
    using workspace = createWorkspace({ 'node_modules/other/index.js': 'good', 'src/a.ts': '' });
    const own = workspace.at('node_modules/@whoa/tools');
    await BUNDLERS['esbuild']!({ host: join(import.meta.dirname, 'run-bash.ts'), watchdog: WATCHDOG }, own);
    const before = workspace.list();
    const command =
      'for file in node_modules/@whoa/tools/*; do echo evil >> $file; done; echo evil > node_modules/other/index.js; mv node_modules old; echo ok > src/a.ts';
    const { stdout } = spawnSync(process.execPath, [join(own, 'host.mjs'), workspace.path, command], {
      encoding: 'utf8',
    });
    expect(stdout).toContain('Read-only file system');
    expect(workspace.read('src/a.ts')).toBe('ok\n');
    expect(workspace.read('node_modules/other/index.js')).toBe('good');
    expect(workspace.read('node_modules/@whoa/tools/watchdog.mjs')).not.toContain('evil');
    expect(workspace.list().filter((name) => !name.startsWith('old'))).toEqual(before);
  },
);
