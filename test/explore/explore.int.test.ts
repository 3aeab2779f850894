import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { plantedBugs } from './planted.ts';

const sources = join(import.meta.dirname, '../../packages/core/src');

interface Explored {
  readonly schedules: number;
  readonly violation?: string;
}

async function explore(...args: string[]): Promise<Explored> {
  const command = ['--conditions=@whoa/source', '--no-warnings', join(import.meta.dirname, 'explore.ts'), ...args];
  const { stdout } = await promisify(execFile)(process.execPath, command).catch((error: { stdout: string }) => error);
  return JSON.parse(stdout) as Explored;
}

test('100,000 schedules of cancel, finish, fail, escalate, dispose and new messages keep every promise', async () => {
  const halves = await Promise.all([1, 2].map((seed) => explore('--schedules', '50000', '--seed', `${seed}`)));
  expect(halves).toEqual([{ schedules: 50_000 }, { schedules: 50_000 }]);
});

test.each(plantedBugs)('the exploration finds a planted bug: $name', async ({ changes, breaks }) => {
  const folder = await mkdtemp(join(tmpdir(), 'whoa-planted-'));
  try {
    await cp(sources, folder, { recursive: true });
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    for (const { file, find, replace } of changes) {
      const source = await readFile(join(folder, file), 'utf8');
      expect(source.split(find), `${find} stands once in ${file}`).toHaveLength(2);
      await writeFile(join(folder, file), source.replace(find, replace));
    }
    const { violation, schedules } = await explore('--schedules', '20000', '--core', folder);
    expect(violation).toContain(breaks);
    console.log(`found after ${schedules} schedules`);
  } finally {
    await rm(folder, { recursive: true });
  }
});
