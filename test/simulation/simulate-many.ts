// Plays several ranges of seeds in one process, which starts and compiles the sources once.
//   node simulate-many.ts '[{ "from": 1, "seeds": 100, "ground": "wide" }, …]'
// Prints a JSON list with one summary for each.
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { playSeeds, type SeedsOptions } from './simulate-seeds.ts';
import type { Simulated } from './simulated.ts';

export type SeedsJob = Pick<SeedsOptions, 'from' | 'seeds' | 'ground'> & Partial<SeedsOptions>;

if (import.meta.main) {
  const folder = join(import.meta.dirname, '../../packages/tasks/src');
  const results: Simulated[] = [];
  for (const job of JSON.parse(process.argv[2]!) as SeedsJob[]) {
    results.push(await playSeeds({ folder, first: false, trace: false, ...job }));
    // A rejection that a broken history left behind belongs to its own job.
    await turn();
  }
  console.log(JSON.stringify(results));
}
