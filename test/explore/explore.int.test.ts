import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { plant } from '../plant.ts';
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

/** Nothing here waits: on a busy machine it only takes longer. */
const BUSY_MS = 1_200_000;

test('40,000 schedules of cancel, finish, fail, escalate, dispose and new messages keep every promise', {
  timeout: BUSY_MS,
}, async () => {
  const halves = await Promise.all([1, 2].map((seed) => explore('--schedules', '20000', '--seed', `${seed}`)));
  expect(halves).toEqual([{ schedules: 20_000 }, { schedules: 20_000 }]);
});

test.each(plantedBugs)('the exploration finds a planted bug: $name', async ({ changes, breaks }) => {
  const folder = await mkdtemp(join(tmpdir(), 'whoa-planted-'));
  try {
    await cp(sources, folder, { recursive: true });
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    await plant(changes, folder);
    const { violation, schedules } = await explore('--schedules', '20000', '--core', folder);
    expect(violation).toContain(breaks);
    console.log(`found after ${schedules} schedules`);
  } finally {
    await rm(folder, { recursive: true });
  }
});
