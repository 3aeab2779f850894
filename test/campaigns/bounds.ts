// Upper bounds on how often a promise can be broken, given that the campaigns that test it have found no violation.
import type { LogEntry } from './campaign-log.ts';

type Campaign = Pick<LogEntry, 'campaign' | 'store' | 'seeds' | 'count' | 'violations'>;

interface Coverage {
  /** `simulated`: a seed gives the same run each time. `real`: servers and processes, never the same twice. */
  readonly kind: 'simulated' | 'real';
  readonly promises: readonly string[];
}

const IN_SIMULATIONS = ['P1', 'P2', 'P3', 'P4', 'P5', 'P6', 'P7', 'P8', 'P9', 'P10'];

/** The promises that each campaign can find broken. */
const COVERAGE: Readonly<Record<string, Coverage>> = {
  simulate: { kind: 'simulated', promises: IN_SIMULATIONS },
  'simulate-suspends': { kind: 'simulated', promises: IN_SIMULATIONS },
  'simulate-upgrade': { kind: 'simulated', promises: IN_SIMULATIONS },
  'simulate-mixed': { kind: 'simulated', promises: [...IN_SIMULATIONS, 'P13'] },
  chaos: { kind: 'real', promises: ['P1', 'P2', 'P3', 'P5', 'P7', 'P10'] },
};

const BEGIN = '<!-- Written from docs/evidence/campaign-log.md by the campaigns. -->';
const END = '<!-- The end of what campaigns write. -->';

/** Returns the page of the promises with the bounds that a campaign log gives. */
export function withBounds(page: string, log: readonly Campaign[]): string {
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new SyntaxError(`the page has no '${BEGIN}' or no '${END}'`);
  return `${before}${BEGIN}\n\n${describeBounds(log)}\n\n${END}${after}`;
}

function describeBounds(log: readonly Campaign[]): string {
  const promises = [...new Set(Object.values(COVERAGE).flatMap((coverage) => coverage.promises))];
  const toNumber = (promise: string): number => Number(promise.slice(1));
  const rows = promises
    .toSorted((one, other) => toNumber(one) - toNumber(other))
    .map((promise) => {
      const [simulated, real] = (['simulated', 'real'] as const).map((kind) => describeBound(promise, kind, log));
      return `| ${promise} | ${simulated} | ${real} |`;
    });
  return ['| Promise | Simulated runs | Chaos runs on real stores |', '| --- | --- | --- |', ...rows].join('\n');
}

/** The rule of three: if N independent runs show no violation, then with 95 % confidence fewer than 3 in N do. */
function describeBound(promise: string, kind: Coverage['kind'], log: readonly Campaign[]): string {
  const names = Object.entries(COVERAGE).filter(
    ([, coverage]) => coverage.kind === kind && coverage.promises.includes(promise),
  );
  if (names.length === 0) return 'not judged';
  const count = names.reduce((sum, [name]) => sum + countSince(log, name, kind), 0);
  return count === 0 ? 'not run yet' : `≤ 3 in ${count.toLocaleString('en')}`;
}

/** Counts the runs of a campaign on each store since its last violation there. */
function countSince(log: readonly Campaign[], name: string, kind: Coverage['kind']): number {
  const countable = new Map<string, Campaign[]>();
  for (const entry of log.filter(({ campaign }) => campaign === name)) {
    const before = entry.violations > 0 ? [] : (countable.get(entry.store) ?? []);
    countable.set(entry.store, entry.violations > 0 ? [] : [...before, entry]);
  }
  const counts = [...countable.values()].map((entries) =>
    kind === 'simulated' ? distinctSeeds(entries) : entries.reduce((sum, { count }) => sum + count, 0),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Counts a seed that was run twice once: the runs are not independent. */
function distinctSeeds(entries: readonly Campaign[]): number {
  const ranges = entries.flatMap(({ seeds }) => (seeds === undefined ? [] : [seeds]));
  let [count, counted] = [0, 0];
  for (const [from, to] of ranges.toSorted((one, other) => one[0] - other[0])) {
    count += Math.max(0, to - Math.max(from - 1, counted));
    counted = Math.max(counted, to);
  }
  return count;
}
