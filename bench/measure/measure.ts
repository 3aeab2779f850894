import { parseArgs } from 'node:util';

/** One measure: our figure and the bare engine's, from the same run. */
export interface Measure {
  readonly name: string;
  readonly ours: number;
  readonly bare: number;
  /** The limit for `ratio`. */
  readonly goal: { readonly atMost: number } | { readonly atLeast: number };
  /** Further figures worth knowing: p50, p99, units. */
  readonly more?: Record<string, number | string>;
}

const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } }, allowPositionals: true });

/** Prints a measure: one JSON object with `--json`, one line for people without. A ratio is `ours / bare`. */
export function report({ name, ours, bare, goal, more = {} }: Measure): void {
  const ratio = ours / bare;
  const ok = 'atMost' in goal ? ratio <= goal.atMost : ratio >= goal.atLeast;
  const figures = { name, ours: round(ours), bare: round(bare), ratio: round(ratio), goal, ok, ...more };
  if (values.json) console.log(JSON.stringify(figures));
  else {
    const limit = 'atMost' in goal ? `at most ${goal.atMost}` : `at least ${goal.atLeast}`;
    const rest = Object.entries(more).map(([key, value]) => `${key} ${value}`);
    console.log(
      `${ok ? 'ok  ' : 'MISS'} ${name}: ${round(ours)} beside ${round(bare)}, ratio ${round(ratio)} (${limit}) ${rest.join(', ')}`,
    );
  }
  if (!ok) process.exitCode = 1;
}

/** The value below which a share of the samples lies. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}
