import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { plant } from '../plant.ts';
import type { PlantedBug } from './planted-bug.ts';
import { type Simulated, simulateMany } from './simulated.ts';

const root = join(import.meta.dirname, '../..');

/** Plants each bug in its own copy of the sources, and plays seeds with it until one finds it. */
export async function tryPlanted(bugs: readonly PlantedBug[], seeds: number): Promise<Simulated[]> {
  await mkdir(join(root, '.cache'), { recursive: true });
  // Inside the project: the copies find the other packages where the original does.
  const home = await mkdtemp(join(root, '.cache/planted-'));
  try {
    await writeFile(join(home, 'package.json'), '{ "type": "module" }');
    const jobs = await Promise.all(
      bugs.map(async ({ changes, ground }, i) => {
        const folder = join(home, `${i}`);
        await cp(join(root, 'packages/tasks/src'), folder, { recursive: true });
        await plant(changes, folder);
        return { from: 1, seeds, ground, folder, first: true };
      }),
    );
    return await simulateMany(jobs);
  } finally {
    await rm(home, { recursive: true });
  }
}
