// Sums up the results of the stages of .ci/run in a folder: prints the slowest test files, the seconds of each stage
// and the result.
//   node scripts/ci-summary.ts FOLDER SECONDS
import { readdirSync, readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join, relative } from 'node:path';

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly { readonly name: string; readonly startTime: number; readonly endTime: number }[];
}

const SLOWEST = 10;
const [folder = '', seconds = '?'] = process.argv.slice(2);
const read = (file: string): string => readFileSync(join(folder, file), 'utf8');
const files = readdirSync(folder);
const stages = files.filter((file) => file.endsWith('.stage')).map((file) => file.slice(0, -'.stage'.length));

let [passed, failed] = [0, 0];
const times: string[] = [];
const slow: { readonly file: string; readonly ms: number }[] = [];
for (const stage of stages) {
  const [code, stageSeconds] = read(`${stage}.stage`).trim().split(' ');
  times.push(`${stage} ${stageSeconds} s`);
  const hasFailed = code !== '0';
  if (!files.includes(`${stage}.json`)) {
    if (hasFailed) failed++;
    else passed++;
    continue;
  }
  const report = JSON.parse(read(`${stage}.json`)) as Report;
  passed += report.numPassedTests;
  // A file that cannot be loaded, or that left something running, fails without a failed test.
  failed += report.numFailedTests || (hasFailed ? 1 : 0);
  for (const { name, startTime, endTime } of report.testResults) {
    slow.push({ file: relative('.', name), ms: endTime - startTime });
  }
}

if (slow.length > 0) console.log('slowest test files:');
for (const { file, ms } of slow.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST)) {
  console.log(`${(ms / 1_000).toFixed(1).padStart(7)} s  ${file}`);
}
console.log(`stages: ${times.join(', ')}`);
console.log(
  `total ${seconds} s, load average ${loadavg()
    .map((load) => load.toFixed(1))
    .join(' ')}`,
);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
