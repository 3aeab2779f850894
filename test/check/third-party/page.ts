import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKS, GROUPS } from '@whoa/check';
import { countRuns, type Outcome, readResults, type SubjectResult } from './results.ts';
import type { Subject } from './subject.ts';
import { SUBJECTS } from './subjects/subjects.ts';

const DOCS = join(import.meta.dirname, '../../../docs/evidence');

interface Checked {
  readonly subject: Subject;
  readonly result: SubjectResult;
}

/** Writes the page from the saved results. */
export function writePage(): void {
  writeFileSync(join(DOCS, 'check-results.md'), toPage(readResults()));
  spawnSync('npx', ['biome', 'format', '--write', join(DOCS, 'check-results.json')]);
}

/** The page that shows results. */
export function toPage(results: readonly SubjectResult[]): string {
  const all = SUBJECTS.flatMap((subject) => {
    const result = results.find(({ name }) => name === subject.name);
    return result === undefined ? [] : [{ subject, result: leaveOutOurs(subject, result) }];
  });
  const others = all.filter(({ subject }) => subject.name !== 'whoa');
  return [
    introduction(others),
    summary(all),
    table(all),
    ...behindProxy(all),
    faster(all),
    ...all.map(section),
    notChecked(),
    repeat(),
  ].join('\n');
}

function leaveOutOurs({ upToTheProgram = [] }: Subject, result: SubjectResult): SubjectResult {
  const details = ['up to the program around it and its tool, which here are ours'];
  const outcomes = result.outcomes.map((outcome) =>
    upToTheProgram.includes(outcome.id)
      ? { ...outcome, statuses: outcome.statuses.map(() => 'not-applicable' as const), details }
      : outcome,
  );
  return { ...result, outcomes };
}

function introduction(others: readonly Checked[]): string {
  const dates = others.map(({ result }) => result.date).sort();
  const when = dates[0] === dates.at(-1) ? `on ${dates[0]}` : `from ${dates[0]} to ${dates.at(-1)}`;
  return `# Check results

${headline(others)}This page shows which agents and servers stop when you cancel them, as the [check kit](../guides/check.md) observed it.
It ran on ${others.length} third-party agents and servers, and on ours, ${when}.

- Each was installed from npm in the version shown, with its own empty home folder, no account and no model but the kit's. The table shows how often it ran.
- A result that differed between two runs is marked ±.
${describeResistance(others)}- The machine was busy, so a check that timed out was retried with a one-minute limit.

These are observations with one version, one configuration and one kind of tool, on one busy machine with two cores, under Linux.
Most checks are not based on a specification: they describe what we think users expect, and other projects may have reasons to behave differently.
Where a specification has a MUST or SHOULD, the page cites it.
We have not contacted any of the projects yet; corrections are welcome.
`;
}

/** What failed without the proxy, and behind it. */
function headline(others: readonly Checked[]): string {
  const proxied = others.flatMap(({ result }) =>
    result.proxied === undefined ? [] : [{ result, proxied: result.proxied }],
  );
  if (proxied.length === 0) return '';
  const countFailed = (list: readonly Outcome[]): number =>
    list.filter((one) => ['✘', '±'].includes(toMark(one))).length;
  const countAll = (choose: (one: Outcome) => boolean): readonly [number, number] => [
    proxied.reduce((sum, { result }) => sum + countFailed(result.outcomes.filter(choose)), 0),
    proxied.reduce((sum, { proxied: { outcomes } }) => sum + countFailed(outcomes.filter(choose)), 0),
  ];
  const [bare, behind] = countAll(({ id }) => !isResistance(id));
  const resisted = proxied.filter(({ proxied: { outcomes } }) => outcomes.some(({ id }) => isResistance(id)));
  const [bareResistance, behindResistance] = countAll(({ id }) => isResistance(id));
  return `**${proxied.length} agents for editors failed ${bare} checks together, and ${behind} behind [\`whoa acp --\`](../guides/editors.md#make-another-agent-stop).**
${
  resisted.length === 0
    ? ''
    : `Of the checks in which a command resists its stop, ${resisted.length} of them failed ${bareResistance}, and ${behindResistance} behind it.\n`
}
`;
}

function describeResistance(others: readonly Checked[]): string {
  const run = others.filter(({ result }) => result.groups?.['resist'] !== undefined);
  if (run.length === 0) return '';
  const dates = [...new Set(run.map(({ result }) => result.groups!['resist']!))].sort();
  return `- The group \`resist\` ran once, as root, on ${run.length} of them, on ${dates.join(' and ')}. A ? in its rows means that it was not run.\n`;
}

const isResistance = (id: string): boolean => CHECKS.find((one) => one.id === id)?.group === 'resist';

function summary(all: readonly Checked[]): string {
  const rows = all.map(({ subject, result }) => {
    const versions = Object.entries(result.versions)
      .slice(0, 2)
      .map(([name, version]) => `${name} ${version}`);
    const count = (mark: string): number => result.outcomes.filter((outcome) => toMark(outcome) === mark).length;
    const counts = ['✔', '✘', '±', '?', '–'].map(count);
    return `| [${subject.title}](#${anchor(subject.title)}) | ${versions.join(', ') || 'this repository'} | ${subject.protocol} | ${countRuns(result)} | ${counts.join(' | ')} |`;
  });
  return `## What was checked

| | version | protocol | runs | ✔ | ✘ | ± | ? | – |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
${rows.join('\n')}

✔ passed · ✘ failed · ± failed in one try and passed in another · ? the check did not reach the moment it tests, or was not measured · – not applicable
`;
}

function table(all: readonly Checked[]): string {
  const rows = CHECKS.map(({ id, title }) => {
    const cells = all.map(({ result }) => toCell(result.outcomes.find((outcome) => outcome.id === id)));
    return `| \`${id}\` ${title} | ${cells.join(' | ')} |`;
  });
  return `## All checks

| | ${all.map(({ subject }) => subject.title.replace(/ \(.*/, '')).join(' | ')} |
| --- |${' --- |'.repeat(all.length)}
${rows.join('\n')}

The rows are in the order of the groups: ${Object.keys(GROUPS).join(', ')}.
The \`latency\` figures are the medians of ten cancels in milliseconds, from the faster run.
The machine was busy, so they are upper bounds, and differences of less than 100 ms mean nothing.
A process that leaves its group (\`left-detached\`, \`orphans-…\`) does so on purpose; no specification requires agents to follow it.
`;
}

/** The effect of `whoa acp -- COMMAND`: the checks that failed without it, and those that still fail. */
function behindProxy(all: readonly Checked[]): string[] {
  const rows = all.flatMap(({ subject, result }) => {
    if (result.proxied === undefined) return [];
    const { outcomes } = result.proxied;
    const count = (list: readonly Outcome[]): string =>
      ['✔', '✘', '±', '?'].map((mark) => list.filter((one) => toMark(one) === mark).length).join(' | ');
    const fixed = result.outcomes.flatMap((bare) => {
      const after = outcomes.find(({ id }) => id === bare.id);
      const isFixed = ['✘', '±'].includes(toMark(bare)) && after !== undefined && toMark(after) === '✔';
      return isFixed ? [`\`${bare.id}\``] : [];
    });
    const left = outcomes.filter((one) => ['✘', '±', '?'].includes(toMark(one)));
    const why = left.map(({ id, details }) => `\`${id}\`: ${details.join('; ').replaceAll('|', '/')}`);
    return [
      `| ${subject.title} | ${count(result.outcomes)} | ${count(outcomes)} | ${fixed.join(', ')} | ${why.join('; ')} | ${describeWedged(result.proxied.wedged)} |`,
    ];
  });
  if (rows.length === 0) return [];
  return [
    `## Behind the proxy

These are the same versions behind [\`whoa acp -- COMMAND\`](../guides/editors.md#make-another-agent-stop).
Each run directly followed one without the proxy, on one build, with a wait of 800 ms.
Read the table with care:

- The machine was busy (a load of 15 to 30 on two cores), and up to three agents were checked at the same time. Checks that timed out or were unclear were retried once, alone; where \`latency\` is still not measured, the load is the cause.
- A median near 800 ms is the proxy's wait: the agent had not answered by then, and the proxy answered for it.
- A check that fails only sometimes without the proxy may be missing under “fixed”, or be there by chance: there is one run of each.
- \`next-knows-text\` is about what an agent sends to its model, which a proxy cannot fix from outside.
- “When stuck” is not a check of the kit: all processes of the agent are stopped (SIGSTOP) mid-reply, its prompt is cancelled, and another one is sent. The column shows how long the cancel took, how the agent's session came back in its next process, and whether the model then saw the earlier prompt.
- What an agent had saved is up to the agent. Where the column shows an error, its next request has a message without content, which the kit's model rejects, as strict providers do.

| | bare ✔ | ✘ | ± | ? | proxied ✔ | ✘ | ± | ? | fixed | still failing | when stuck |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
${rows.join('\n')}
`,
  ];
}

function describeWedged(wedged: NonNullable<SubjectResult['proxied']>['wedged']): string {
  if (wedged === undefined) return 'not tried';
  if (typeof wedged === 'string') return `failed: ${wedged.replaceAll('|', '/')}`;
  const { stopMs, mode, remembers } = wedged;
  return `${stopMs} ms, \`${mode}\`, ${remembers ? 'remembers' : 'has forgotten'}`;
}

/** The subjects that stop sooner than ours. */
function faster(all: readonly Checked[]): string {
  const own = all.find(({ subject }) => subject.name === 'whoa');
  const lines = ['latency-reply', 'latency-call'].map((id) => {
    const ours = getMedian(own?.result.outcomes.find((outcome) => outcome.id === id));
    const sooner = all.flatMap(({ subject, result }) => {
      const theirs = getMedian(result.outcomes.find((outcome) => outcome.id === id));
      return theirs !== undefined && ours !== undefined && theirs < ours ? [`${subject.title} (${theirs} ms)`] : [];
    });
    if (ours === undefined) return `- \`${id}\`: not measured for Whoa.`;
    return `- \`${id}\`: Whoa took ${ours} ms. ${sooner.length === 0 ? 'None was faster' : `Faster: ${sooner.join(', ')}`}.`;
  });
  return `## Where others are better\n\n${lines.join('\n')}\n`;
}

function section({ subject, result }: Checked): string {
  const wrong = result.outcomes.filter((outcome) => ['✘', '±', '?'].includes(toMark(outcome)));
  const reasons = new Map<string, string[]>();
  for (const { id, details, statuses } of result.outcomes) {
    if (!statuses.every((status) => status === 'not-applicable')) continue;
    const why = details[0] ?? '';
    reasons.set(why, [...(reasons.get(why) ?? []), `\`${id}\``]);
  }
  const skipped = [...reasons].map(([why, ids]) => `- ${ids.join(', ')}: ${why}`);
  return [
    `## ${subject.title}\n`,
    `${subject.about} Set up as in: ${subject.page}. It identifies itself as “${result.agent}”.\n`,
    ...(subject.fairly === undefined ? [] : [`${subject.fairly}\n`]),
    ...(result.remark === undefined ? [] : [`How it was made: ${result.remark}\n`]),
    ...(wrong.length === 0
      ? ['Every applicable check passed.\n']
      : [`${wrong.map((outcome) => line(outcome, subject)).join('\n')}\n`]),
    ...(skipped.length === 0 ? [] : [`Not applicable:\n\n${skipped.join('\n')}\n`]),
  ].join('\n');
}

function line({ id, details, statuses }: Outcome, { protocol }: Subject): string {
  const check = CHECKS.find((one) => one.id === id);
  const rule = check?.rules?.[protocol];
  const from = rule === undefined ? 'our own rule' : `${rule.from}, ${rule.level}`;
  const observed = details.join('; in another run: ').replaceAll('|', '/');
  return `- ${toMark({ statuses })} \`${id}\` (${from}): ${check?.title ?? ''}. Observed: ${observed}`;
}

function notChecked(): string {
  return `## What could not be checked

We tried these and left them out:

- oh-my-pi 18.2.3 (needs Bun)
- Letta Code 0.32.18 (a dependency is not on npm)
- Crush 0.96.1 (its program is downloaded from elsewhere)
- Droid 0.215.0 (needs an account)
- Gemini CLI 0.61.0 (supports only Gemini, which the kit's model does not)
- the MCP server “everything” 2026.8.31 (calls no model, so hardly any check applies)
- CopilotKit 1.75.0 (supports AG-UI 0.0.59, the kit 1.0; the kit does not understand what it sends after a stop)
`;
}

function repeat(): string {
  return `## Repeat it

\`\`\`sh
npm run build
npm run long -- check-others            # all, into .cache/others; hours on a small machine
npm run long -- check-others codex pi   # some
\`\`\`

This replaces the saved results and this page. With \`--resume\`, an interrupted campaign keeps the runs it has saved.

\`test/check/third-party\` shows how each one is started; the results as data are in [check-results.json](check-results.json).
`;
}

function toCell(outcome: Outcome | undefined): string {
  if (outcome === undefined) return '?';
  const median = getMedian(outcome);
  return median !== undefined && toMark(outcome) === '✔' ? String(median) : toMark(outcome);
}

/** The best of the medians that a latency check reported. */
function getMedian(outcome: Outcome | undefined): number | undefined {
  if (outcome === undefined || !outcome.id.startsWith('latency-')) return undefined;
  const medians = outcome.details.flatMap((details) =>
    [...details.matchAll(/p50 (\d+) ms/g)].map(([, ms]) => Number(ms)),
  );
  return medians.length === 0 ? undefined : Math.min(...medians);
}

function toMark({ statuses }: Pick<Outcome, 'statuses'>): '✔' | '✘' | '±' | '?' | '–' {
  const is = (status: Outcome['statuses'][number]): boolean => statuses.every((one) => one === status);
  if (is('passed')) return '✔';
  if (is('failed')) return '✘';
  if (is('not-applicable')) return '–';
  return statuses.includes('failed') ? '±' : '?';
}

function anchor(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-');
}
