import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { plant } from '../../plant.ts';
import type { PlantedBug } from './planted.ts';

const root = join(import.meta.dirname, '../../..');

/** Plants a bug in a copy of the packages, and runs its campaign there. Returns the first problem, if it found one. */
export async function tryPlanted(bug: PlantedBug, count: number): Promise<string | undefined> {
  await mkdir(join(root, '.cache'), { recursive: true });
  // Inside the project, so that the copies find the packages of others.
  const home = await mkdtemp(join(root, '.cache/planted-fuzz-'));
  try {
    await mkdir(join(home, 'node_modules/@whoa'), { recursive: true });
    for (const name of ['core', 'ai-sdk']) {
      const [from, to] = [join(root, 'packages', name), join(home, 'packages', name)];
      await cp(join(from, 'src'), join(to, 'src'), { recursive: true });
      await cp(join(from, 'package.json'), join(to, 'package.json'));
      await symlink(to, join(home, 'node_modules/@whoa', name));
    }
    for (const folder of ['campaigns/fuzz', 'long'])
      await cp(join(root, 'test', folder), join(home, 'test', folder), { recursive: true });
    await cp(join(root, 'test/plant.ts'), join(home, 'test/plant.ts'));
    await plant(bug.changes, join(home, 'packages'));
    const command = [
      '--conditions=@whoa/source',
      '--no-warnings',
      join(home, 'test/long/fuzz.ts'),
      bug.campaign,
      `${count}`,
    ];
    const { stdout } = await promisify(execFile)(process.execPath, command, { maxBuffer: 1e8 }).catch(
      (error: { stdout: string }) => error,
    );
    return (JSON.parse(stdout.trim().split('\n').at(-1)!) as { problems: string[] }).problems[0];
  } finally {
    await rm(home, { recursive: true });
  }
}
