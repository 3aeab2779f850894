// The shell of docs/tutorial.md is run against two instances of its chat on a real Redis, as a reader would.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { expect, test } from 'vitest';
import { startRedis } from '../servers/redis.ts';
import { temporaryFolder } from '../tasks/child.ts';
import { blocksOf, ROOT } from './pages.ts';

const STALLED = { parts: [{ text: ['Once upon a time ', { stall: true as const }] }] };
const FINISHED = { parts: [{ text: 'there was a compiler.' }] };

async function startInstance(env: Readonly<Record<string, string>>): Promise<{ url: string; child: ChildProcess }> {
  const server = join(ROOT, 'examples/web-chat/app/server.ts');
  const child = spawn(process.execPath, ['--no-warnings', '--conditions=@whoa/source', server], {
    env: { ...process.env, ...env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { url: line.toString().trim(), child };
}

test('one instance stops what the other runs, and finishes what a killed one began', async () => {
  using folder = temporaryFolder();
  await using redis = await startRedis({ appendfsync: 'none' });
  // The reply that is stopped, the one whose instance is killed, and the same one in the other instance.
  const provider = await startLoopbackProvider({ script: [STALLED, STALLED, FINISHED] });
  const env = {
    OPENAI_BASE_URL: provider.url,
    OPENAI_API_KEY: 'none',
    REDIS_URL: redis.url,
    DATABASE: join(folder.path, 'app.db'),
  };
  const [a, b] = await Promise.all([startInstance(env), startInstance(env)]);
  writeFileSync(join(folder.path, 'a.pid'), `${a.child.pid}`);
  try {
    const [, , ...steps] = blocksOf('docs/tutorial.md').filter(({ language }) => language === 'sh');
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
    expect(read('rest.txt')).toContain('there was a compiler.');
  } finally {
    for (const { child } of [a, b]) child.kill('SIGKILL');
    await provider.close();
  }
}, 120_000);
