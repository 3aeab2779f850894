// Every scenario of a chat (test/web/scenarios) in a new user's application: packed packages, installed into an empty
// folder, real
// Chromium, on Postgres, with `reply` and with `agent`.
//   npm run build && npm run long -- web [WORDS OF A SCENARIO]
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addLocalPackages } from '../../scripts/local-packages.ts';

const root = join(import.meta.dirname, '../..');
const OURS = ['@whoa/server', '@whoa/core', '@whoa/tasks', '@whoa/ai-sdk'];
/** The peers of our packages in such an application. */
const THEIRS = ['ai', '@ai-sdk/react', '@ai-sdk/openai', '@ag-ui/client', '@ag-ui/core'];
const MORE = ['react', 'react-dom', 'zod', 'pg'];
const COPIED = ['page.ts', 'files.ts', 'abort-driven-transport.ts', 'other-chats.ts', 'scenarios/server.ts'];

/** The version that we test with. */
function readVersion(name: string): string {
  const manifest = readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8');
  return `${name}@${(JSON.parse(manifest) as { version: string }).version}`;
}

const work = mkdtempSync(join(tmpdir(), 'whoa-web-'));
const folder = join(work, 'app');
try {
  mkdirSync(folder);
  addLocalPackages(folder, OURS);
  const installed = [...THEIRS, ...MORE].map(readVersion);
  execFileSync('npm', ['install', '--no-audit', '--no-fund', ...installed], { cwd: folder, stdio: 'inherit' });
  for (const file of COPIED) cpSync(join(root, 'test/web', file), join(folder, 'web', file));
  const named = process.argv.slice(2).join(' ');
  const args = ['vitest', 'run', '--project', 'integration', 'test/web/scenarios', '--reporter', 'verbose'];
  const env = { ...process.env, WHOA_WEB_FOLDER: folder, WHOA_WEB_LONG: '1' };
  const options = { cwd: root, stdio: 'inherit', env } as const;
  const { status } = spawnSync('npx', named === '' ? args : [...args, '-t', named], options);
  process.exitCode = status ?? 1;
} finally {
  rmSync(work, { recursive: true });
}
