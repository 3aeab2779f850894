// Random histories of a page: commands, tabs, a phone, reloads, outages, instances that end, and other logins:
//   npm run long -- page-histories [COUNT] [SEED] [memory|sqlite|postgres|own] [--plant forget|stop-any]
// Without a store, on all. With a planted bug, in memory until a history has found it: it fails if none of COUNT has.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createVirtualWorld } from '@whoa/core/testing';
import { borrowPostgres } from '../../servers/borrow.ts';
import { temporaryFolder } from '../../tasks/child.ts';
import { openHarness, type WebHarness } from '../scenarios/harness.ts';
import { type Fault, type HistoryParts, openBrowsers, type Plant, playHistory, type Verdict } from './history.ts';

const STORES = ['memory', 'sqlite', 'postgres', 'own'] as const;
/** Histories that run together. Instances that end are ended for all of them. */
const TOGETHER = 6;

/** By what a violation is counted as the planted bug. Any other fails the campaign. */
const FOUND: Readonly<Record<Plant, RegExp>> = {
  forget: /^lost: the server neither took nor refused /,
  'stop-any': /^stopped, and not meant: |^lost: the stop of /,
};

const options = { plant: { type: 'string' } } as const;
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const [count = '20', seed = '1', only] = positionals;
const plant = values.plant as Plant | undefined;

async function openStore(name: (typeof STORES)[number], stack: AsyncDisposableStack) {
  if (name === 'memory') return { store: 'memory', isAlone: true };
  if (name === 'postgres') return { store: stack.use(await borrowPostgres()).url };
  const { path } = stack.use(temporaryFolder());
  const store = `sqlite:${join(path, 'tasks.db')}`;
  return name === 'own' ? { store, history: join(path, 'chats.db') } : { store };
}

/** Ends instances, one fault after the other. One that does not start again fails the history that ended it. */
function createDisturb(harness: WebHarness): HistoryParts['disturb'] {
  let last = Promise.resolve();
  const run = async (fault: Fault): Promise<void> => {
    const signal = fault === 'deploy' ? 'SIGTERM' : 'SIGKILL';
    for (const instance of fault === 'kill' ? [0] : [0, 1]) {
      await harness.end(instance, signal);
      if (fault !== 'all') await harness.heal();
    }
    await harness.heal();
  };
  return (fault) => {
    const own = last.then(() => run(fault));
    last = own.catch(() => {});
    return own;
  };
}

let failed = 0;
for (const name of plant ? (['memory'] as const) : STORES.filter((one) => only === undefined || one === only)) {
  await using stack = new AsyncDisposableStack();
  const harness = stack.use(
    await openHarness({ kind: 'reply', mode: 'production', ...(await openStore(name, stack)) }),
  );
  const disturb = name === 'memory' ? undefined : createDisturb(harness);
  const began = Date.now();
  const end = Number(seed) + Number(count);
  const found: number[] = [];
  let next = Number(seed);
  let isFound = false;
  const play = async (): Promise<void> => {
    const browsers = await openBrowsers(harness, plant);
    while (next < end && !isFound) {
      const own = next++;
      const world = createVirtualWorld({ seed: own });
      const {
        violations,
        steps,
        details = '',
      } = await playHistory({
        harness,
        random: () => world.random(),
        browsers,
        disturb,
      }).catch((error: unknown): Verdict => ({ violations: [`not played to its end: ${String(error)}`], steps: [] }));
      if (violations.length === 0) continue;
      found.push(own);
      isFound ||= plant !== undefined && violations.some((one) => FOUND[plant].test(one));
      console.log(`${name}, seed ${own}:\n  ${[...steps, ...violations, details].join('\n  ')}`);
    }
  };
  await Promise.all(Array.from({ length: TOGETHER }, play));
  failed += plant === undefined ? found.length : Number(!isFound);
  const seconds = Math.round((Date.now() - began) / 1_000);
  const seeds = found.length > 0 ? `, of seeds ${found.join(', ')}` : '';
  console.log(
    `${name}: ${next - Number(seed)} histories from seed ${seed} in ${seconds} s, ${found.length} with violations${seeds}`,
  );
  if (plant) console.log(`the planted '${plant}' was ${isFound ? '' : 'not '}found`);
}
process.exitCode = failed > 0 ? 1 : 0;
