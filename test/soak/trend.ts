/** One thing that is measured again and again. */
export interface Series {
  readonly name: string;
  readonly values: readonly number[];
}

/** What a series does over time. */
export interface Trend {
  readonly name: string;
  readonly median: number;
  /** How much it would grow over the whole time, by the slope of its later part. */
  readonly growth: number;
  /** How far values lie from that line: three times the median distance. */
  readonly noise: number;
  readonly isFlat: boolean;
}

/** Growth below this share of the median is no growth. */
const MIN_SHARE = 0.05;

/** The trend without the first third, in which caches fill and code is compiled. Theil and Sen's slope: outliers count little. */
export function computeTrend({ name, values }: Series, minGrowth = 0): Trend {
  const later = values.slice(Math.floor(values.length / 3));
  const slopes = later.flatMap((value, i) => later.slice(i + 1).map((other, j) => (other - value) / (j + 1)));
  const slope = computeMedian(slopes);
  const median = computeMedian(later);
  const start = computeMedian(later.map((value, i) => value - slope * i));
  const noise = 3 * computeMedian(later.map((value, i) => Math.abs(value - start - slope * i)));
  const growth = slope * (later.length - 1);
  const isFlat = growth <= Math.max(noise, MIN_SHARE * median, minGrowth);
  return { name, median, growth, noise, isFlat };
}

function computeMedian(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
