// Runs the cancel scenarios with other libraries and with ours: npm run peers [-- NAME…] [--scenario=ID] [--json] [--write]
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Observation } from '../peers/core/repeat.ts';
import { installPeers, manifest } from '../peers/run/install.ts';
import { type LibraryKey, libraries, libraryKeys } from '../peers/run/libraries.ts';
import { observe } from '../peers/run/observe.ts';
import { renderPage } from '../peers/run/page.ts';
import type { Results } from '../peers/run/results.ts';
import { scenarios } from '../peers/scenarios/all.ts';

const AT_ONCE = 2;

const root = join(import.meta.dirname, '..');
const folder = join(root, '.cache/peers');
const file = join(root, 'peers/results.json');

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    scenario: { type: 'string', multiple: true },
  },
});
const unknown = positionals.find((name) => !(name in libraries));
if (unknown !== undefined) {
  console.error(`peers: there is no ${unknown}; name some of ${libraryKeys.join(', ')}`);
  process.exit(2);
}
const keys = positionals.length > 0 ? (positionals as LibraryKey[]) : libraryKeys;
const today = new Date().toISOString().slice(0, 10);
const selected = scenarios.filter(({ id }) => values.scenario?.includes(id) ?? true);
const isWhole = selected.length === scenarios.length;

if (keys.some((key) => key !== 'whoa')) installPeers(folder);
const observations = await observeAll();
const results: Results = {
  dates: measuredToday(),
  node: process.version.slice(1),
  versions: { ...manifest.dependencies, ...manifest.packed },
  observations,
};
if (values.json) console.log(JSON.stringify(results, undefined, 2));
if (values.write) write(results);

/** Today, for the libraries that ran in every scenario. */
function measuredToday(): Results['dates'] {
  return Object.fromEntries((isWhole ? keys : []).map((key) => [key, today])) as Results['dates'];
}

/** What ran again since the whole was measured. */
function describeRepeats({ remark }: Partial<Results>): string | undefined {
  if (isWhole) return keys.length === libraryKeys.length ? undefined : remark;
  const names = keys.map((key) => libraries[key].name).join(', ');
  const again = `On ${today}, ${selected.map(({ id }) => `\`${id}\``).join(', ')} ran again for ${names}.`;
  return remark?.includes(again) ? remark : [remark, again].filter(Boolean).join(' ');
}

async function observeAll(): Promise<Results['observations']> {
  const seen: Record<string, Partial<Record<LibraryKey, Observation>>> = {};
  const jobs = selected.flatMap(({ id }) => keys.map((key) => ({ id, key })));
  const work = async (): Promise<void> => {
    for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) {
      const { id, key } = job;
      const module = key === 'whoa' ? join(root, 'peers/adapters/whoa.ts') : join(folder, `adapters/${key}.mjs`);
      const observation = await observe(module, id);
      (seen[id] ??= {})[key] = observation;
      if (!values.json) console.log(`${observation.result.padEnd(11)} ${key.padEnd(13)} ${id}: ${observation.seen}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return seen;
}

/** Saves the results, and keeps the saved ones of libraries and scenarios that were not selected. */
function write(next: Results): void {
  let saved: Partial<Results> = {};
  try {
    saved = JSON.parse(readFileSync(file, 'utf8')) as Results;
  } catch {
    // There are none yet.
  }
  const merged: Record<string, Results['observations'][string]> = {};
  for (const { id } of scenarios) {
    const both = { ...saved.observations?.[id], ...next.observations[id] };
    merged[id] = Object.fromEntries(libraryKeys.flatMap((key) => (both[key] ? [[key, both[key]]] : [])));
  }
  const remark = describeRepeats(saved);
  const dates = { ...saved.dates, ...next.dates };
  const results: Results = { ...next, dates, ...(remark !== undefined && { remark }), observations: merged };
  writeFileSync(file, `${JSON.stringify(results, undefined, 2)}\n`);
  writeFileSync(join(root, 'docs/evidence/peers.md'), renderPage(results));
}
