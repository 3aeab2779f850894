// Runs the cancel check kit on the agents and servers of others, twice each, and writes docs/check-results.md.
// npm run long -- check-others [NAME…] [--runs 2] [--resume] [--page]
// Saved runs are replaced; with --resume they are kept, so that an interrupted campaign continues. --page runs nothing.
import { parseArgs } from 'node:util';
import { install, installedVersion } from '../check/others/install.ts';
import { writePage } from '../check/others/page.ts';
import { addRun, readResults, runsOf, savedOutcomes, saveResult } from '../check/others/results.ts';
import { runSubject } from '../check/others/run.ts';
import type { Subject } from '../check/others/subject.ts';
import { SUBJECTS } from '../check/others/subjects/subjects.ts';

const { positionals: wanted, values } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '2' },
    resume: { type: 'boolean', default: false },
    page: { type: 'boolean', default: false },
  },
});
const unknown = wanted.find((name) => SUBJECTS.every((subject) => subject.name !== name));
if (unknown !== undefined) {
  console.error(`check-others: no '${unknown}'; there are ${SUBJECTS.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}
if (values.page) writePage();
else
  for (const subject of SUBJECTS)
    if (wanted.length === 0 || wanted.includes(subject.name)) await check(subject, Number(values.runs));

async function check(subject: Subject, runs: number): Promise<void> {
  const folder = install(subject);
  const names = Object.keys(subject.packages);
  const versions = Object.fromEntries(names.map((name) => [name, installedVersion(folder, name)]));
  const saved = readResults().find(({ name }) => name === subject.name);
  let outcomes = savedOutcomes(saved, { versions, resume: values.resume });
  for (let round = runsOf({ outcomes }) + 1; round <= runs; round++) {
    console.log(`${subject.title}, run ${round} of ${runs}`);
    const run = await runSubject(subject);
    outcomes = addRun(outcomes, run);
    const date = new Date().toISOString().slice(0, 10);
    saveResult({ name: subject.name, date, agent: run.agent, versions, outcomes });
    writePage();
  }
}
