// The page docs/evidence/peers.md, made from saved results.
import type { Observation } from '../core/repeat.ts';
import { GROUPS } from '../core/scenario.ts';
import { scenarios } from '../scenarios/all.ts';
import { type LibraryKey, libraries, libraryKeys } from './libraries.ts';
import type { Results } from './results.ts';

const SIGNS: Readonly<Record<Observation['result'], string>> = {
  yes: 'yes',
  partly: 'partly',
  no: '**no**',
  sometimes: '**sometimes**',
  'not offered': '–',
  'not run': 'not run',
};

const GOOD: readonly Observation['result'][] = ['yes'];
const POOR: readonly Observation['result'][] = ['no', 'partly', 'sometimes', 'not offered'];

export function renderPage(results: Results): string {
  return [
    intro(results),
    table(results),
    better(results),
    ...libraryKeys.map((key) => section(key, results)),
    rules(),
    repeatIt,
  ]
    .join('\n\n')
    .concat('\n');
}

function intro(results: Results): string {
  const { dates, node, remark } = results;
  return `# Compared with other libraries

This page shows what happens when you press Stop, in ${libraryKeys.length} libraries and ${scenarios.length} scenarios.
It was written by \`npm run peers -- --write\`, with Node ${node}; ${describeDates(dates)}.

${libraryKeys.map((key) => summary(key, results)).join('\n')}

A result describes what this version did in this scenario, on this machine.
It does not mean that a library is bad: most of these scenarios are ours, and most libraries were made for something else.

## How it was measured

- Every library was installed from npm; Whoa was run from this repository.
- Each is used as its own documentation describes, and talks to the same local provider, which is as strict about histories as the vendors.
- A scenario uses only what can be seen from outside: the requests that arrive, the connections that close, what the tools did, and what the public interface returns.
- Each ran three times, each time in a separate process.${remark === undefined ? '' : ` ${remark}`}

| result | meaning |
| --- | --- |
| yes | as expected |
| partly | with a flaw |
| no | not as expected |
| sometimes | it differed between repetitions |
| – | the library has no such feature |
| not run | the library has the feature, but it needs a separate server |

[Below](#what-was-observed) is one sentence for every result that is not a yes.`;
}

/** One library's results in words. */
function summary(key: LibraryKey, { observations }: Results): string {
  const count = (...results: Observation['result'][]): number =>
    scenarios.filter(({ id }) => results.includes(observations[id]?.[key]?.result ?? 'not run')).length;
  const bad = count('no', 'sometimes');
  return `- **${libraries[key].name}** behaves as expected in ${count('yes')} scenarios, with a flaw in ${count('partly')}, and not as expected in ${bad}. It has no such feature, or we did not run it, in ${count('not offered', 'not run')}.`;
}

function table({ observations }: Results): string {
  const head = ['scenario', ...libraryKeys.map((key) => libraries[key].name)];
  const rows = Object.entries(GROUPS).flatMap(([group, title]) => [
    [`**${title}**`, ...libraryKeys.map(() => '')],
    ...scenarios
      .filter((scenario) => scenario.group === group)
      .map(({ id, expects }) => [expects, ...libraryKeys.map((key) => sign(observations[id]?.[key]))]),
  ]);
  const total = libraryKeys.map((key) => {
    const own = scenarios.filter(({ id }) => observations[id]?.[key]?.result === 'yes');
    return `${own.length} of ${scenarios.length}`;
  });
  return ['## The table', '', row(head), row(head.map(() => '---')), ...rows.map(row), row(['**yes**', ...total])].join(
    '\n',
  );
}

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

const sign = (observation: Observation | undefined): string =>
  observation === undefined ? 'not run' : SIGNS[observation.result];

/** The rows in which another library does better than ours. */
function better({ observations }: Results): string {
  const lines = scenarios.flatMap(({ id, expects }) => {
    const own = observations[id]?.whoa;
    if (own === undefined || !POOR.includes(own.result)) return [];
    const names = libraryKeys.filter((key) => GOOD.includes(observations[id]?.[key]?.result ?? 'no'));
    return names.length === 0
      ? []
      : [`- ${expects} ${names.map((key) => libraries[key].name).join(', ')}: yes. Whoa: ${own.seen}.`];
  });
  return ['## Where another library is better', '', ...lines].join('\n');
}

function section(key: LibraryKey, { observations, versions }: Results): string {
  const { name, packages } = libraries[key];
  const installed = packages.map((one) => `\`${one}\` ${versions[one]}`).join(', ');
  const lines = scenarios.flatMap(({ id, expects }) => {
    const seen = observations[id]?.[key];
    return seen === undefined || seen.result === 'yes'
      ? []
      : [`- *${expects}* ${seen.result}: ${escapeMarkup(seen.seen)}`];
  });
  const first = key === libraryKeys[0] ? '## What was observed\n\n' : '';
  return `${first}### ${name}\n\n${installed === '' ? 'From this repository.' : `${installed}.`}\n\n${lines.join('\n')}`;
}

const rules = (): string =>
  [
    '## The rules',
    '',
    ...scenarios.map(({ id, expects, rule }) => `- \`${id}\` *${expects}* ${escapeMarkup(rule)}`),
  ].join('\n');

/** A library may be measured again, alone. */
function describeDates(dates: Results['dates']): string {
  const days = [...new Set(Object.values(dates))].toSorted();
  const measured = days.map((day) => {
    const names = libraryKeys.filter((key) => dates[key] === day).map((key) => libraries[key].name);
    return `${days.length === 1 ? 'everything' : names.join(', ')} was measured on ${day}`;
  });
  return measured.join(', ');
}

/** Texts of libraries and vendors may look like Markdown, HTML or a template of the site. */
const escapeMarkup = (text: string): string =>
  text.replace(/[\\`*_{}[\]<>|]/g, (sign) => `\\${sign}`).replace(/\s+/g, ' ');

const repeatIt = `## Repeat it

\`\`\`
npm ci && npm run build
npm run peers                       # everything, about half an hour
npm run peers -- mastra whoa        # some libraries
npm run peers -- --scenario=latency # one scenario
npm run peers -- --json             # for machines
\`\`\`

The libraries are installed into \`.cache/peers\`, with the versions of \`peers/package-lock.json\` and without running their install scripts.
The scenarios are in \`peers/scenarios\`, each with the user's expectation and the rule that decides; the adapters are in \`peers/adapters\`.
If a library is used wrongly, or can do something better, please change its adapter.`;
