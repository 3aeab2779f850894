// The shell of docs/tutorial.md is run against two instances of its chat on a real Redis, as a reader would.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { startRedis } from '../servers/redis.ts';
import { temporaryFolder } from '../tasks/child.ts';
import { findBlocks, ROOT } from './pages.ts';

async function start(
  program: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ url: string; child: ChildProcess }> {
  const path = join(ROOT, 'examples/web-chat', program);
  const child = spawn(process.execPath, ['--no-warnings', '--conditions=@whoa/source', path], {
    env: { ...process.env, ...env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { url: line.toString().trim(), child };
}

test('one instance stops tasks of the other, and finishes those of a killed one', async () => {
  using folder = temporaryFolder();
  await using redis = await startRedis({ appendfsync: 'none' });
  const provider = await start('no-key.ts');
  const env = {
    OPENAI_BASE_URL: provider.url,
    OPENAI_API_KEY: 'none',
    REDIS_URL: redis.url,
    DATABASE: join(folder.path, 'app.db'),
  };
  const [a, b] = await Promise.all([start('app/server.ts', env), start('app/server.ts', env)]);
  writeFileSync(join(folder.path, 'a.pid'), `${a.child.pid}`);
  try {
    const [, , , ...steps] = findBlocks('docs/tutorial.md').filter(({ language }) => language === 'sh');
    const shell = spawn('sh', ['-euc', steps.map((block) => block.text).join('\n')], {
      cwd: folder.path,
      env: { ...process.env, A: a.url, B: b.url },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const closed = once(shell, 'close') as Promise<[code: number | null]>;
    const [output, [code]] = await Promise.all([text(shell.stdout), closed]);
    const read = (file: string): string => readFileSync(join(folder.path, file), 'utf8');
    expect(output).toContain('data-stop-report');
    expect(output).toContain('"type":"finish"');
    expect(code).toBe(0);
    expect(read('receipt.json')).toContain('"accepted"');
    expect(read('a.json')).toContain('Once upon a time');
    expect(read('rest.txt')).toContain('"agent "');
  } finally {
    for (const { child } of [a, b, provider]) child.kill('SIGKILL');
  }
}, 120_000);
