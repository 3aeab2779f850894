// 100,000 generated calls that need approval at a terminal and in an editor; every way to set approval with every kind of tool,
// three agents deep; and 3,000 conversations with custom loops: npm run long -- approvals [seed].
import { tryWholeMatrix } from '../campaigns/approval-matrix.ts';
import { fuzzApprovals } from '../campaigns/approvals.ts';
import { runApprovedTurns } from '../campaigns/approved-turns.ts';

const seed = Number(process.argv[2] ?? Date.now() % 1_000_000);

async function runCampaign(
  name: string,
  campaign: () => Promise<{ readonly problems: readonly unknown[] }>,
): Promise<void> {
  const started = performance.now();
  const report = await campaign();
  const seconds = Math.round((performance.now() - started) / 1_000);
  console.log(JSON.stringify({ name, seed, seconds, ...report }, undefined, 2));
  if (report.problems.length > 0) process.exitCode = 1;
}

await runCampaign('ways to ask', tryWholeMatrix);
await runCampaign('generated calls', () => fuzzApprovals({ calls: 100_000, seed }));
await runCampaign('own loops', () => runApprovedTurns({ conversations: 3_000, seed }));
