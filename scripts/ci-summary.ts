// Sums up the results of the stages of .ci/run in a folder: prints the test files that cost most, the seconds and the CPU
// time of each stage, and the result. On a quiet machine the budget of CPU time is part of the result.
//   node scripts/ci-summary.ts FOLDER SECONDS BEFORE AFTER     the last two: the first line of /proc/stat
import { readdirSync, readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join, relative } from 'node:path';
import { readSpent } from './ci-stolen.ts';

interface FileResult {
  readonly name: string;
  readonly startTime: number;
  readonly endTime: number;
  readonly assertionResults: readonly { readonly status: string }[];
}

interface Report {
  readonly testResults: readonly FileResult[];
}

const DEAREST = 10;
/** A test file that takes more seconds of CPU time has a line that begins like this, and says why. */
const DEAR_SECONDS = 20;
const REASON = /^ ?(?:\/\/|\*) .*\bdear: /m;
/** What everything but the installation may take, in seconds of CPU time. Lower it when less is spent: the goal is 1,100. */
const CPU_BUDGET = 1_250;
const INSTALLATION: ReadonlySet<string> = new Set(['system', 'install']);
/** On a shared machine, CPU seconds grow: what the host took away, and what other processes spent, of all that was spent. */
const QUIET_PERCENT = 5;
const [folder = '', seconds = '?', before = '', after = ''] = process.argv.slice(2);
const read = (file: string): string => readFileSync(join(folder, file), 'utf8');
const files = readdirSync(folder);
const stages = files.filter((file) => file.endsWith('.stage')).map((file) => file.slice(0, -'.stage'.length));

let [passed, failed] = [0, 0];
const times: string[] = [];
const dear: { readonly file: string; readonly ms: number }[] = [];
let [cpuSeconds, allSeconds] = [0, 0];
for (const stage of stages) {
  const [code, stageSeconds, cpu] = read(`${stage}.stage`).trim().split(' ');
  const ofCpu = Math.round(Number(cpu ?? 0) / 1_000);
  times.push(`${stage} ${stageSeconds} s (${cpu === undefined ? '?' : ofCpu})`);
  allSeconds += ofCpu;
  if (!INSTALLATION.has(stage)) cpuSeconds += ofCpu;
  if (files.includes(`${stage}.cpu`))
    for (const line of read(`${stage}.cpu`).trim().split('\n')) {
      const [ms, file = ''] = line.split(' ');
      dear.push({ file: relative('.', file), ms: Number(ms) });
    }
  const hasFailed = code !== '0';
  if (!files.includes(`${stage}.json`)) {
    if (hasFailed) failed++;
    else passed++;
    continue;
  }
  const results = readResults(stage);
  const count = (status: string): number =>
    results.reduce((all, file) => all + file.assertionResults.filter((test) => test.status === status).length, 0);
  passed += count('passed');
  // A file that cannot be loaded, or that left something running, fails without a failed test.
  failed += count('failed') || (hasFailed ? 1 : 0);
}

/** The results of each test file: of its last run alone, if it failed among others. */
function readResults(stage: string): readonly FileResult[] {
  const parse = (file: string): Report => JSON.parse(read(file)) as Report;
  const again = files.includes(`${stage}.again.json`) ? parse(`${stage}.again.json`).testResults : [];
  for (const { name } of again)
    console.log(`flaky: ${relative('.', name)} failed in ${stage} and then ran three times alone`);
  const isRepeated = new Set(again.map(({ name }) => name));
  return [...parse(`${stage}.json`).testResults.filter(({ name }) => !isRepeated.has(name)), ...again];
}

if (dear.length > 0) console.log('test files by CPU time, with their processes and without the shared servers:');
for (const [index, { file, ms }] of dear.toSorted((a, b) => b.ms - a.ms).entries()) {
  const lacksReason = ms > DEAR_SECONDS * 1_000 && !REASON.test(readFileSync(file, 'utf8'));
  if (index < DEAREST || lacksReason)
    console.log(
      `${(ms / 1_000).toFixed(1).padStart(7)} s  ${file}${lacksReason ? `: above ${DEAR_SECONDS} s, and no line says why` : ''}`,
    );
}
console.log(`stages, with seconds of CPU time: ${times.join(', ')}`);
const { stolenPercent, busySeconds } = readSpent(before, after);
const othersPercent = Math.round((100 * Math.max(0, busySeconds - allSeconds)) / Math.max(busySeconds, 1));
const isQuiet = stolenPercent < QUIET_PERCENT && othersPercent < QUIET_PERCENT;
console.log(
  `CPU time: ${cpuSeconds} s, budget ${CPU_BUDGET} s; the host took ${stolenPercent} % away, others spent ${othersPercent} %${isQuiet ? '' : ': not judged'}`,
);
if (isQuiet && allSeconds > 0) failed += cpuSeconds > CPU_BUDGET ? 1 : 0;
console.log(
  `total ${seconds} s, load average ${loadavg()
    .map((load) => load.toFixed(1))
    .join(' ')}`,
);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
