// Runs the cancel check kit on the agents and servers of others, twice each, and writes docs/check-results.md:
// npm run long -- check-others [NAME…], or --page to write the page anew from what was saved.
import { parseArgs } from 'node:util';
import { install, installedVersion } from '../check/others/install.ts';
import { writePage } from '../check/others/page.ts';
import { combine, saveResult } from '../check/others/results.ts';
import { type Run, runSubject } from '../check/others/run.ts';
import type { Subject } from '../check/others/subject.ts';
import { SUBJECTS } from '../check/others/subjects/subjects.ts';

const RUNS = 2;

const { positionals: wanted, values } = parseArgs({ allowPositionals: true, options: { page: { type: 'boolean' } } });
const unknown = wanted.find((name) => SUBJECTS.every((subject) => subject.name !== name));
if (unknown !== undefined) {
  console.error(`check-others: no '${unknown}'; there are ${SUBJECTS.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}
if (values.page) writePage();
for (const subject of values.page ? [] : SUBJECTS) {
  if (wanted.length > 0 && !wanted.includes(subject.name)) continue;
  await checkTwice(subject);
  writePage();
}

async function checkTwice(subject: Subject): Promise<void> {
  const runs: Run[] = [];
  for (let round = 1; round <= RUNS; round++) {
    console.log(`${subject.title}, run ${round} of ${RUNS}`);
    runs.push(await runSubject(subject));
  }
  const folder = install(subject);
  const names = Object.keys(subject.packages);
  const versions = Object.fromEntries(names.map((name) => [name, installedVersion(folder, name)]));
  const date = new Date().toISOString().slice(0, 10);
  saveResult({ name: subject.name, date, agent: runs[0]!.agent, versions, outcomes: combine(runs) });
}
