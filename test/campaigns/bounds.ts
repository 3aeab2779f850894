// Upper bounds on how often a promise can be broken, given that the campaigns that test it have found no violation.
import type { LogEntry } from './campaign-log.ts';
import { replaceWritten } from './written.ts';

type Campaign = Pick<LogEntry, 'date' | 'campaign' | 'store' | 'seeds' | 'count' | 'violations'>;

interface Coverage {
  /** `simulated`: a seed gives the same run each time. `real`: servers and processes, never the same twice. */
  readonly kind: 'simulated' | 'real';
  readonly promises: readonly string[];
  /** The first day on which the campaign judged a promise, if it did not from its beginning. */
  readonly since?: Readonly<Record<string, string>>;
}

const IN_SIMULATIONS = ['P1', 'P2', 'P3', 'P4', 'P5', 'P6', 'P7', 'P8', 'P9', 'P10'];

/** The promises that each campaign can find broken. */
const COVERAGE: Readonly<Record<string, Coverage>> = {
  simulate: { kind: 'simulated', promises: IN_SIMULATIONS },
  'simulate-suspends': { kind: 'simulated', promises: IN_SIMULATIONS },
  'simulate-upgrade': { kind: 'simulated', promises: IN_SIMULATIONS },
  'simulate-poison': { kind: 'simulated', promises: IN_SIMULATIONS },
  'simulate-provider': { kind: 'simulated', promises: IN_SIMULATIONS },
  'simulate-mixed': {
    kind: 'simulated',
    promises: [...IN_SIMULATIONS, 'P13', 'P14'],
    since: { P14: '2026-11-18' },
  },
  'question-chaos': { kind: 'real', promises: ['P14'] },
  chaos: { kind: 'real', promises: ['P1', 'P2', 'P3', 'P5', 'P7', 'P10'] },
};

/** Returns the page of the promises with the bounds that a campaign log gives. */
export function withBounds(page: string, log: readonly Campaign[]): string {
  return replaceWritten(page, describeBounds(log));
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
  const judging = Object.entries(COVERAGE).filter(
    ([, coverage]) => coverage.kind === kind && coverage.promises.includes(promise),
  );
  if (judging.length === 0) return 'not judged';
  const count = judging.reduce((sum, [name, { since }]) => {
    const judged = log.filter(({ campaign, date }) => campaign === name && date >= (since?.[promise] ?? ''));
    return sum + countRuns(judged, kind);
  }, 0);
  return count === 0 ? 'not run yet' : `≤ 3 in ${count.toLocaleString('en')}`;
}

/** Counts the runs of a campaign on each store since its last violation there. */
function countRuns(log: readonly Campaign[], kind: Coverage['kind']): number {
  const stores = Map.groupBy(log, ({ store }) => store);
  const count =
    kind === 'simulated' ? (found: Campaign[]) => distinctSeeds(sinceViolation(found)) : countSinceViolation;
  return Array.from(stores.values(), count).reduce((sum, one) => sum + one, 0);
}

/** How many runs, or other units, of one campaign on one store followed its last violation. */
export function countSinceViolation(entries: readonly Campaign[]): number {
  return sinceViolation(entries).reduce((sum, { count }) => sum + count, 0);
}

function sinceViolation(entries: readonly Campaign[]): readonly Campaign[] {
  return entries.slice(entries.findLastIndex(({ violations }) => violations > 0) + 1);
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
