import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKS, GROUPS } from '@whoa/check';
import { type Outcome, readResults, runsOf, type SubjectResult } from './results.ts';
import type { Subject } from './subject.ts';
import { SUBJECTS } from './subjects/subjects.ts';

const DOCS = join(import.meta.dirname, '../../../docs');

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
    faster(all),
    ...all.map(section),
    notChecked(),
    repeat(),
  ].join('\n');
}

function leaveOutOurs({ upToTheProgram = [] }: Subject, result: SubjectResult): SubjectResult {
  const said = ['up to the program around it and its tool, which here are ours'];
  const outcomes = result.outcomes.map((outcome) =>
    upToTheProgram.includes(outcome.id)
      ? { ...outcome, statuses: outcome.statuses.map(() => 'not-applicable' as const), said }
      : outcome,
  );
  return { ...result, outcomes };
}

function introduction(others: readonly Checked[]): string {
  const dates = others.map(({ result }) => result.date).sort();
  const when = dates[0] === dates.at(-1) ? `on ${dates[0]}` : `from ${dates[0]} to ${dates.at(-1)}`;
  return `# Check results

The [cancel check kit](guides/check.md) ran on ${others.length} agents and servers of others, and on ours, ${when}. Each was installed from npm in
the version that is named, had a home folder of its own, no account and no model but the kit's, and ran as often as the table says. A result that differed between two runs is shown as that. Where
something came too late, it got another try with a minute of time, because the machine was busy.

Read it as what was observed with one version, one configuration and one kind of tool, on one busy machine with two cores, under Linux. Most checks stand on no specification: they are what we think users expect, and others
may have reasons to do otherwise. A specification's MUST or SHOULD is named where there is one. None of the makers has been asked yet; corrections are welcome.
`;
}

function summary(all: readonly Checked[]): string {
  const rows = all.map(({ subject, result }) => {
    const versions = Object.entries(result.versions)
      .slice(0, 2)
      .map(([name, version]) => `${name} ${version}`);
    const count = (mark: string): number => result.outcomes.filter((outcome) => markOf(outcome) === mark).length;
    const counts = ['✔', '✘', '±', '?', '–'].map(count);
    return `| [${subject.title}](#${anchor(subject.title)}) | ${versions.join(', ') || 'this repository'} | ${subject.protocol} | ${runsOf(result)} | ${counts.join(' | ')} |`;
  });
  return `## Who was checked

| | version | protocol | runs | ✔ | ✘ | ± | ? | – |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
${rows.join('\n')}

✔ passed · ✘ failed · ± failed in one try and passed in another · ? the moment that the check is about was not reached, or not measured · – does not apply
`;
}

function table(all: readonly Checked[]): string {
  const rows = CHECKS.map(({ id, title }) => {
    const cells = all.map(({ result }) => cellOf(result.outcomes.find((outcome) => outcome.id === id)));
    return `| \`${id}\` ${title} | ${cells.join(' | ')} |`;
  });
  return `## All checks

| | ${all.map(({ subject }) => subject.title.replace(/ \(.*/, '')).join(' | ')} |
| --- |${' --- |'.repeat(all.length)}
${rows.join('\n')}

The rows are in the order of the groups: ${Object.keys(GROUPS).join(', ')}. The figures of \`latency\` are the medians of ten cancels in milliseconds, from the faster run. The machine was busy, so they are
upper bounds, and differences of less than 100 ms mean nothing. A process that leaves its group (\`left-detached\`, \`orphans-…\`) does so on purpose; no specification asks agents to follow it.
`;
}

/** Who stops sooner than we do. */
function faster(all: readonly Checked[]): string {
  const own = all.find(({ subject }) => subject.name === 'whoa');
  const lines = ['latency-reply', 'latency-call'].map((id) => {
    const ours = medianOf(own?.result.outcomes.find((outcome) => outcome.id === id));
    const sooner = all.flatMap(({ subject, result }) => {
      const theirs = medianOf(result.outcomes.find((outcome) => outcome.id === id));
      return theirs !== undefined && ours !== undefined && theirs < ours ? [`${subject.title} (${theirs} ms)`] : [];
    });
    if (ours === undefined) return `- \`${id}\`: not measured for Whoa.`;
    return `- \`${id}\`: Whoa took ${ours} ms. ${sooner.length === 0 ? 'Nobody was faster' : `Faster: ${sooner.join(', ')}`}.`;
  });
  return `## Where others are better\n\n${lines.join('\n')}\n`;
}

function section({ subject, result }: Checked): string {
  const wrong = result.outcomes.filter((outcome) => ['✘', '±', '?'].includes(markOf(outcome)));
  const reasons = new Map<string, string[]>();
  for (const { id, said, statuses } of result.outcomes) {
    if (!statuses.every((status) => status === 'not-applicable')) continue;
    const why = said[0] ?? '';
    reasons.set(why, [...(reasons.get(why) ?? []), `\`${id}\``]);
  }
  const skipped = [...reasons].map(([why, ids]) => `- ${ids.join(', ')}: ${why}`);
  return [
    `## ${subject.title}\n`,
    `${subject.about} Set up as in: ${subject.page}. It introduces itself as “${result.agent}”.\n`,
    ...(subject.fairly === undefined ? [] : [`${subject.fairly}\n`]),
    ...(result.remark === undefined ? [] : [`How it was made: ${result.remark}\n`]),
    ...(wrong.length === 0
      ? ['Every check that applies was passed.\n']
      : [`${wrong.map((outcome) => line(outcome, subject)).join('\n')}\n`]),
    ...(skipped.length === 0 ? [] : [`Does not apply:\n\n${skipped.join('\n')}\n`]),
  ].join('\n');
}

function line({ id, said, statuses }: Outcome, { protocol }: Subject): string {
  const check = CHECKS.find((one) => one.id === id);
  const rule = check?.rules?.[protocol];
  const from = rule === undefined ? 'our own rule' : `${rule.from}, ${rule.level}`;
  const observed = said.join('; in another run: ').replaceAll('|', '/');
  return `- ${markOf({ statuses })} \`${id}\` (${from}): ${check?.title ?? ''}. Observed: ${observed}`;
}

function notChecked(): string {
  return `## What could not be checked

Tried and left out: oh-my-pi 18.2.3 (needs Bun), Letta Code 0.32.18 (a dependency is not on npm), Crush 0.96.1 (its program is downloaded from elsewhere), Droid 0.215.0 (needs an account), Gemini CLI 0.61.0 (speaks
only Gemini, which the kit's model does not), the MCP server “everything” 2026.8.31 (asks no model, so hardly a check
applies), CopilotKit 1.75.0 (speaks AG-UI 0.0.59, the kit 1.0; what it sends after a stop is not understood there).
`;
}

function repeat(): string {
  return `## Repeat it

\`\`\`sh
npm run build
npm run long -- check-others            # all, into .cache/others; hours on a small machine
npm run long -- check-others codex pi   # some
\`\`\`

This replaces the saved results and this page. With \`--resume\`, a campaign that was interrupted keeps the runs it has saved.

How each one is started is in \`test/check/others\`; the results as data are in [check-results.json](check-results.json).
`;
}

function cellOf(outcome: Outcome | undefined): string {
  if (outcome === undefined) return '?';
  const median = medianOf(outcome);
  return median !== undefined && markOf(outcome) === '✔' ? String(median) : markOf(outcome);
}

/** The best of the medians in what a check of latency said. */
function medianOf(outcome: Outcome | undefined): number | undefined {
  if (outcome === undefined || !outcome.id.startsWith('latency-')) return undefined;
  const medians = outcome.said.flatMap((said) => [...said.matchAll(/p50 (\d+) ms/g)].map(([, ms]) => Number(ms)));
  return medians.length === 0 ? undefined : Math.min(...medians);
}

function markOf({ statuses }: Pick<Outcome, 'statuses'>): '✔' | '✘' | '±' | '?' | '–' {
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
