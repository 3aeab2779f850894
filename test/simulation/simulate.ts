// Plays seeded histories of the task engine: the real store moves, runner and agents, on a clock that moves when told, over a
// network and processes that fail. One seed is one history.
//   npm run simulate -- --seeds N [--from M] [--tasks FOLDER]
// `--tasks` names a folder with the sources of another tasks package: that is how planted bugs are tried.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import * as core from '@whoa/core';
import * as testing from '@whoa/core/testing';
import { playSeed } from './play.ts';

type Tasks = typeof import('@whoa/tasks');

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    tasks: { type: 'string', default: join(import.meta.dirname, '../../packages/tasks/src') },
    json: { type: 'boolean', default: false },
    /** Stop at the first violation. */
    first: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
  },
});

const load = (file: string): Promise<object> => import(pathToFileURL(join(values.tasks, file)).href) as Promise<object>;
const tasks = Object.assign(
  {},
  ...(await Promise.all(['stores/memory.ts', 'run/store-runner.ts', 'errors.ts', 'unknown-outcome.ts'].map(load))),
) as Tasks;
const [from, seeds] = [Number(values.from), Number(values.seeds)];
const digests: string[] = [];
let broken = 0;
let firstBroken: { readonly seed: number; readonly violation: string } | undefined;
let ended = 0;
/** What nobody catches ends a real worker. */
let crashed: unknown[] = [];
process.on('unhandledRejection', (error) => crashed.push(error));
process.on('uncaughtException', (error) => crashed.push(error));
for (let seed = from; seed < from + seeds; seed++) {
  const played = await playSeed(seed, { core, testing, tasks, trace: values.trace });
  const { digest, tasks: count } = played;
  const crashes = crashed.map((error) => ({ promise: 'P2', what: `a worker crashed: ${String(error)}` }));
  crashed = [];
  const violations = [...played.violations, ...crashes];
  digests.push(digest);
  ended += count;
  if (violations.length === 0) continue;
  broken++;
  const first = violations[0]!;
  firstBroken ??= { seed, violation: `${first.promise} ${first.what}` };
  if (!values.json) {
    console.log(`seed ${seed}: ${violations.map(({ promise, what }) => `${promise} ${what}`).join('; ')}`);
    console.log(`  replay: npm run simulate -- --seeds 1 --from ${seed} --trace`);
  }
  if (values.first) break;
}
const report = { seeds: digests.length, tasks: ended, broken, ...(firstBroken !== undefined && { firstBroken }) };
console.log(values.json ? JSON.stringify({ ...report, digest: digests.join('') }) : JSON.stringify(report));
process.exitCode = broken === 0 ? 0 : 1;
