import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { plant } from '../plant.ts';
import type { PlantedBug } from './planted-bug.ts';
import { type Simulated, simulateMany } from './simulated.ts';

const root = join(import.meta.dirname, '../..');

/** Plants each bug in a separate copy of the sources, and simulates seeds with it until one finds it. */
export async function tryPlanted(bugs: readonly PlantedBug[], seeds: number): Promise<Simulated[]> {
  await mkdir(join(root, '.cache'), { recursive: true });
  // Inside the project, so that the copies find the other packages.
  const home = await mkdtemp(join(root, '.cache/planted-'));
  try {
    await writeFile(join(home, 'package.json'), '{ "type": "module" }');
    const jobs = await Promise.all(
      bugs.map(async ({ changes, profile, bus }, i) => {
        const folder = join(home, `${i}`);
        await cp(join(root, 'packages/tasks/src'), folder, { recursive: true });
        await plant(changes, folder);
        return { from: 1, seeds, profile, bus, folder, first: true };
      }),
    );
    return await simulateMany(jobs);
  } finally {
    await rm(home, { recursive: true });
  }
}
