// Simulates several ranges of seeds in one process, which starts and compiles the sources once.
//   node simulate-many.ts '[{ "from": 1, "seeds": 100, "profile": "mixed" }, …]'
// Prints a JSON list with one summary for each.
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { type SeedsOptions, simulateSeeds } from './simulate-seeds.ts';
import type { Simulated } from './simulated.ts';

export type SeedsJob = Pick<SeedsOptions, 'from' | 'seeds' | 'profile'> & Partial<SeedsOptions>;

if (import.meta.main) {
  const folder = join(import.meta.dirname, '../../packages/tasks/src');
  const results: Simulated[] = [];
  for (const job of JSON.parse(process.argv[2]!) as SeedsJob[]) {
    results.push(await simulateSeeds({ folder, first: false, trace: false, ...job }));
    // A rejection left over from a failed run belongs to its own job.
    await turn();
  }
  console.log(JSON.stringify(results));
}
