// Runs the cancel check kit on third-party agents and servers, twice each, and writes docs/evidence/check-results.md.
//   npm run long -- check-others [NAME…] [--runs 2] [--resume] [--page] [--only GROUP]
// After each run on an ACP agent the next one is on the same agent behind 'whoa acp -- COMMAND'. Build before it.
// Replaces saved runs; --resume keeps them, to continue an interrupted campaign. --page runs nothing.
// --only runs the checks of one group once, and replaces their saved results.
import { parseArgs } from 'node:util';
import { CHECKS } from '@whoa/check';
import { install, installedVersion } from '../check/third-party/install.ts';
import { writePage } from '../check/third-party/page.ts';
import {
  addRun,
  countRuns,
  type Outcome,
  readResults,
  savedOutcomes,
  saveResult,
} from '../check/third-party/results.ts';
import { runSubject, wedgeSubject } from '../check/third-party/run.ts';
import type { Subject } from '../check/third-party/subject.ts';
import { SUBJECTS } from '../check/third-party/subjects/subjects.ts';

const { positionals: wanted, values } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '2' },
    resume: { type: 'boolean', default: false },
    page: { type: 'boolean', default: false },
    only: { type: 'string' },
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
    if (wanted.length === 0 || wanted.includes(subject.name)) {
      if (values.only === undefined) await check(subject, Number(values.runs));
      else await checkGroup(subject, values.only);
    }

/** Runs one group on a subject whose other results are saved. */
async function checkGroup(subject: Subject, group: string): Promise<void> {
  const saved = readResults().find(({ name }) => name === subject.name);
  if (saved === undefined) throw new Error(`check-others: no results of ${subject.name} yet; run it without --only`);
  const only = CHECKS.filter((one) => one.group === group).map(({ id }) => id);
  const run = async (before: readonly Outcome[], isProxied: boolean): Promise<readonly Outcome[]> => {
    console.log(`${subject.title}, ${group}${isProxied ? ', behind the proxy' : ''}`);
    const added = addRun([], await runSubject(subject, { only, isProxied }));
    return [...before.filter(({ id }) => !only.includes(id)), ...added.filter(({ id }) => only.includes(id))];
  };
  const outcomes = await run(saved.outcomes, false);
  const { proxied } = saved;
  const date = new Date().toISOString().slice(0, 10);
  const behind = proxied && { proxied: { ...proxied, outcomes: await run(proxied.outcomes, true) } };
  saveResult({ ...saved, outcomes, ...behind, groups: { ...saved.groups, [group]: date } });
  writePage();
}

async function check(subject: Subject, runs: number): Promise<void> {
  const folder = install(subject);
  const names = Object.keys(subject.packages);
  const versions = Object.fromEntries(names.map((name) => [name, installedVersion(folder, name)]));
  const saved = readResults().find(({ name }) => name === subject.name);
  let outcomes = savedOutcomes(saved, { versions, resume: values.resume });
  let proxied: readonly Outcome[] = countRuns({ outcomes }) === 0 ? [] : (saved?.proxied?.outcomes ?? []);
  const isProxied = subject.protocol === 'acp' && subject.name !== 'whoa';
  for (let round = countRuns({ outcomes }) + 1; round <= runs; round++) {
    console.log(`${subject.title}, run ${round} of ${runs}`);
    const run = await runSubject(subject);
    outcomes = addRun(outcomes, run);
    if (isProxied) {
      console.log(`${subject.title}, run ${round} of ${runs}, behind the proxy`);
      proxied = addRun(proxied, await runSubject(subject, { isProxied }));
    }
    const date = new Date().toISOString().slice(0, 10);
    const wedged = isProxied ? await wedgeSubject(subject).catch((error: Error) => error.message) : '';
    if (isProxied) console.log(wedged);
    const behind = isProxied ? { proxied: { date, outcomes: proxied, wedged } } : {};
    saveResult({ name: subject.name, date, agent: run.agent, versions, outcomes, ...behind });
    writePage();
  }
}
