// 100,000 broken and misplaced frames to real agent processes: npm run long -- acp-fuzz [seed].
import { fuzz } from '../acp/fuzz.ts';

const seed = Number(process.argv[2] ?? Date.now() % 1_000_000);
const started = performance.now();
const report = await fuzz({ frames: 100_000, seed, framesPerProcess: 2_500, hangMs: 1_000 });
const seconds = Math.round((performance.now() - started) / 1_000);
console.log(JSON.stringify({ seed, seconds, ...report }, undefined, 2));
process.exitCode = report.problems.length === 0 ? 0 : 1;
