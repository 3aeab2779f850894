// Follows docs/how-to/stop-button-for-usechat.md literally: an empty folder, its commands, its files, packed packages.
// Reports the time and the number of lines. The model is on this machine; with OPENAI_API_KEY it is the real one.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { chromium } from 'playwright-core';
import { findChromium } from '../web/chromium.ts';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/how-to/stop-button-for-usechat.md'), 'utf8');
const work = mkdtempSync(join(tmpdir(), 'whoa-how-to-'));
const cwd = join(work, 'app');
mkdirSync(cwd);
const started = performance.now();
const sh = (command: string): string => execFileSync('sh', ['-c', command], { cwd, encoding: 'utf8', stdio: 'pipe' });

/** The commands of the page before the server starts. The first one is given our folder instead of the reader's. */
const [pack = '', install = '', start = ''] = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(
  ([, commands]) => commands!,
);
execFileSync('sh', ['-c', pack.replace('../my-chat', cwd)], { cwd: root, stdio: 'inherit' });
sh(install);
let lines = 0;
for (const [, path = '', text = ''] of page.matchAll(/```\w+ file=examples\/web-chat\/app\/(\S+)\n([\s\S]*?)```/g)) {
  writeFileSync(join(cwd, path), text);
  lines += text.trimEnd().split('\n').length;
}
const [build = ''] = start.split('\n');
sh(build);
const provider = await startLoopbackProvider({
  script: () => ({ parts: [{ text: ['Once upon ', { stall: true }] }] }),
});
const key = process.env['OPENAI_API_KEY'];
const model = key === undefined ? { OPENAI_BASE_URL: provider.url, OPENAI_API_KEY: 'none' } : {};
const env = { ...process.env, PORT: '0', ...model };
const server = spawn(process.execPath, ['--no-warnings', 'server.ts'], {
  cwd,
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  const url = await new Promise<string>((resolve) => {
    server.stdout.once('data', (data: Buffer) => resolve(data.toString().trim()));
  });
  const browser = await chromium.launch({ executablePath: findChromium(), args: ['--no-sandbox'] });
  const tab = await browser.newPage();
  await tab.goto(url);
  await tab.fill('input[name=user]', 'ada');
  await tab.click('button');
  await tab.getByText('Send').waitFor();
  await tab.fill('input', 'Tell me a story of 1,000 words');
  await tab.click('button');
  await tab.locator('p.assistant').waitFor();
  await tab.reload();
  await tab.getByText('Stop', { exact: true }).click();
  await tab.getByText('(stopped)').waitFor();
  await tab.reload();
  await tab.getByText('(stopped)').waitFor();
  await browser.close();
  const seconds = Math.round((performance.now() - started) / 1_000);
  console.log(`From npm install to a stop that works after a reload: ${seconds} s, ${lines} lines in 6 files.`);
} finally {
  server.kill('SIGKILL');
  await provider.close();
  rmSync(work, { recursive: true });
}
