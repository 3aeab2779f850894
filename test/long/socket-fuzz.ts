// 100,000 broken and misplaced frames over real WebSockets: npm run long -- socket-fuzz [seed].
import { fuzzSockets } from '../server/socket-fuzz.ts';

const seed = Number(process.argv[2] ?? Date.now() % 1_000_000);
const started = performance.now();
const report = await fuzzSockets({ frames: 100_000, seed, hangMs: 10_000 });
const seconds = Math.round((performance.now() - started) / 1_000);
console.log(JSON.stringify({ seed, seconds, ...report }, undefined, 2));
process.exitCode = report.problems.length === 0 ? 0 : 1;
