// 100,000 generated calls, asked about at a terminal and in an editor: npm run long -- approvals [seed].
import { fuzzApprovals } from '../campaigns/approvals.ts';

const seed = Number(process.argv[2] ?? Date.now() % 1_000_000);
const started = performance.now();
const report = await fuzzApprovals({ calls: 100_000, seed });
const seconds = Math.round((performance.now() - started) / 1_000);
console.log(JSON.stringify({ seed, seconds, ...report }, undefined, 2));
process.exitCode = report.problems.length === 0 ? 0 : 1;
