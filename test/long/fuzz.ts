// Random runs, conversations and own loops, with an oracle that shares no code with the checker of `@whoa/core/testing`; and the bugs
// that it must find: npm run long -- fuzz [runs | conversations | own-loops | planted] [COUNT] [FIRST SEED]
import { fuzzConversations } from '../campaigns/fuzz/conversations.ts';
import type { Found } from '../campaigns/fuzz/found.ts';
import { fuzzOwnLoops } from '../campaigns/fuzz/own-loop.ts';
import { plantedBugs } from '../campaigns/fuzz/planted.ts';
import { tryPlanted } from '../campaigns/fuzz/run-planted.ts';
import { fuzzRuns } from '../campaigns/fuzz/runs.ts';

type Campaign = (seeds: { readonly from: number; readonly count: number }) => Promise<Found>;

const CAMPAIGNS: Readonly<Record<string, readonly [campaign: Campaign, count: number]>> = {
  runs: [fuzzRuns, 200_000],
  conversations: [fuzzConversations, 20_000],
  'own-loops': [fuzzOwnLoops, 3_000],
};
/** How many seeds a planted bug may take to be found. */
const PLANTED_SEEDS = { runs: 10_000, conversations: 1_500, 'own-loops': 200 } as const;

const [wanted, count, from = '1'] = process.argv.slice(2);
if (wanted === 'planted') await findPlanted();
else
  for (const [name, [campaign, usual]] of Object.entries(CAMPAIGNS)) {
    if (wanted !== undefined && wanted !== name) continue;
    const started = performance.now();
    const seeds = { from: Number(from), count: Number(count ?? usual) };
    const { counts, problems } = await campaign(seeds);
    const seconds = Math.round((performance.now() - started) / 1_000);
    console.log(JSON.stringify({ campaign: name, ...seeds, seconds, counts, problems }));
    if (problems.length > 0) process.exitCode = 1;
  }
// Abandoned work of the last seed may still wait.
process.exit();

async function findPlanted(): Promise<void> {
  let missed = 0;
  for (const bug of plantedBugs) {
    const problem = await tryPlanted(bug, PLANTED_SEEDS[bug.campaign]);
    if (problem === undefined) missed++;
    console.log(`| ${bug.name} | ${problem ?? 'not found'} |`);
  }
  console.log(`${plantedBugs.length - missed} of ${plantedBugs.length} found`);
  if (missed > 0) process.exitCode = 1;
}
