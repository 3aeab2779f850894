import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { plant } from '../plant.ts';
import type { PlantedBug } from './planted-bug.ts';
import { type Simulated, simulate } from './simulated.ts';

const root = join(import.meta.dirname, '../..');

/** Plants a bug in a copy of the sources, and plays seeds with it until one finds it. */
export async function tryPlanted({ changes, ground }: PlantedBug, seeds: number): Promise<Simulated> {
  await mkdir(join(root, '.cache'), { recursive: true });
  // Inside the project: the copy finds the other packages where the original does.
  const folder = await mkdtemp(join(root, '.cache/planted-'));
  try {
    await cp(join(root, 'packages/tasks/src'), folder, { recursive: true });
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    await plant(changes, folder);
    return await simulate('--seeds', `${seeds}`, '--ground', ground, '--tasks', folder, '--first');
  } finally {
    await rm(folder, { recursive: true });
  }
}
