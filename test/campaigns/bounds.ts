// How often a promise can at most be broken, if campaigns that looked at it have never seen it.
import type { LedgerEntry } from './ledger.ts';

type Campaign = Pick<LedgerEntry, 'campaign' | 'store' | 'seeds' | 'count' | 'violations'>;

interface Judge {
  /** `simulated`: a seed gives the same run each time. `real`: servers and processes, never the same twice. */
  readonly kind: 'simulated' | 'real';
  readonly promises: readonly string[];
}

const IN_SIMULATIONS = ['P1', 'P2', 'P3', 'P4', 'P5', 'P6', 'P7', 'P8', 'P9', 'P10'];

/** What each campaign can see broken. */
const JUDGES: Readonly<Record<string, Judge>> = {
  simulate: { kind: 'simulated', promises: IN_SIMULATIONS },
  'simulate-pauses': { kind: 'simulated', promises: IN_SIMULATIONS },
  'simulate-upgrade': { kind: 'simulated', promises: IN_SIMULATIONS },
  'simulate-wide': { kind: 'simulated', promises: [...IN_SIMULATIONS, 'P13'] },
  chaos: { kind: 'real', promises: ['P1', 'P2', 'P3', 'P5', 'P7', 'P10'] },
};

const BEGIN = '<!-- Written from docs/evidence/campaign-log.md by the campaigns. -->';
const END = '<!-- The end of what campaigns write. -->';

/** Returns the page of the promises with the bounds that a ledger gives. */
export function withBounds(page: string, ledger: readonly Campaign[]): string {
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new SyntaxError(`the page has no '${BEGIN}' or no '${END}'`);
  return `${before}${BEGIN}\n\n${boundsOf(ledger)}\n\n${END}${after}`;
}

function boundsOf(ledger: readonly Campaign[]): string {
  const promises = [...new Set(Object.values(JUDGES).flatMap((judge) => judge.promises))];
  const numberIn = (promise: string): number => Number(promise.slice(1));
  const rows = promises
    .toSorted((one, other) => numberIn(one) - numberIn(other))
    .map((promise) => {
      const [simulated, real] = (['simulated', 'real'] as const).map((kind) => boundOf(promise, kind, ledger));
      return `| ${promise} | ${simulated} | ${real} |`;
    });
  return ['| Promise | Simulated runs | Chaos runs on real stores |', '| --- | --- | --- |', ...rows].join('\n');
}

/** The rule of three: what was not seen in N independent tries happens in less than 3 of N, with 95 % confidence. */
function boundOf(promise: string, kind: Judge['kind'], ledger: readonly Campaign[]): string {
  const names = Object.entries(JUDGES).filter(([, judge]) => judge.kind === kind && judge.promises.includes(promise));
  if (names.length === 0) return 'not judged';
  const count = names.reduce((sum, [name]) => sum + playedSince(ledger, name, kind), 0);
  return count === 0 ? 'not run yet' : `≤ 3 in ${count.toLocaleString('en')}`;
}

/** How much a campaign has played on its stores since it last found something there. */
function playedSince(ledger: readonly Campaign[], name: string, kind: Judge['kind']): number {
  const played = new Map<string, Campaign[]>();
  for (const entry of ledger.filter(({ campaign }) => campaign === name)) {
    const before = entry.violations > 0 ? [] : (played.get(entry.store) ?? []);
    played.set(entry.store, entry.violations > 0 ? [] : [...before, entry]);
  }
  const counts = [...played.values()].map((entries) =>
    kind === 'simulated' ? distinctSeeds(entries) : entries.reduce((sum, { count }) => sum + count, 0),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Seeds that were played twice are counted once: they are not independent. */
function distinctSeeds(entries: readonly Campaign[]): number {
  const ranges = entries.flatMap(({ seeds }) => (seeds === undefined ? [] : [seeds]));
  let [count, counted] = [0, 0];
  for (const [from, to] of ranges.toSorted((one, other) => one[0] - other[0])) {
    count += Math.max(0, to - Math.max(from - 1, counted));
    counted = Math.max(counted, to);
  }
  return count;
}
