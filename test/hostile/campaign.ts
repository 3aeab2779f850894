// Passes hostile values in at every entry point for a user's value, and reports what goes wrong.
import { flushMicrotasks } from '@whoa/core/testing';
import { type EntryPoint, entryPoints } from './entry-points.ts';
import { type CaseResult, type HostileCase, modes, runCase, stops } from './run-scenario.ts';
import { endless, type HostileValue, values } from './values.ts';

export interface HostileReport {
  cases: number;
  /** Values that were rejected at their entry point. */
  refused: number;
  readonly values: number;
  readonly entryPoints: number;
  /** Different values in different places in different scenes. */
  cells: number;
  /** How many cells there are for each kind of entry point, and for each scenario. */
  readonly kinds: Record<string, number>;
  readonly scenarios: Record<string, number>;
  seconds: number;
  readonly problems: { readonly what: string; count: number; readonly first: string }[];
}

export interface HostileOptions {
  /** Only cases whose name holds this. */
  readonly only?: string;
  readonly maxSeconds?: number;
}

/** Takes over the process's handling of unhandled rejections and exceptions: one campaign a process. */
export async function runCases(cases: Iterable<HostileCase>, options: HostileOptions = {}): Promise<HostileReport> {
  const { only = '', maxSeconds = Infinity } = options;
  let current = '';
  const report: HostileReport = {
    cases: 0,
    refused: 0,
    values: values.length,
    entryPoints: entryPoints.length,
    cells: 0,
    kinds: {},
    scenarios: {},
    seconds: 0,
    problems: [],
  };
  const addProblem = (what: string): void => {
    const known = report.problems.find((problem) => problem.what === what);
    if (known === undefined) report.problems.push({ what, count: 1, first: current });
    else known.count++;
  };
  process.on('unhandledRejection', (error) => addProblem(`unhandled rejection: ${describe(error)}`));
  process.on('uncaughtException', (error) => addProblem(`uncaught: ${describe(error)}`));
  process.on('warning', () => {});
  // The recorder copies with Node's `structuredClone`, which reads any property.
  endless.onRead = () => new Error('read').stack!.includes('structuredClone') || addProblem('it is read without end');
  const cells = new Set<string>();
  const began = performance.now();
  for (const hostileCase of cases) {
    current = describeCase(hostileCase);
    report.seconds = Math.round((performance.now() - began) / 1_000);
    if (report.seconds >= maxSeconds) break;
    if (!current.includes(only)) continue;
    const result = await runCase(hostileCase).catch(toFailedResult);
    await flushMicrotasks();
    for (const problem of result.problems) addProblem(problem);
    report.cases++;
    if (result.isRejected) report.refused++;
    for (const { entryPoint, value } of hostileCase.hostile) {
      const cell = `${entryPoint.name} × ${value.name} × ${hostileCase.scenario}`;
      if (cells.has(cell)) continue;
      cells.add(cell);
      report.kinds[entryPoint.kind] = (report.kinds[entryPoint.kind] ?? 0) + 1;
      report.scenarios[hostileCase.scenario] = (report.scenarios[hostileCase.scenario] ?? 0) + 1;
    }
  }
  report.cells = cells.size;
  return report;
}

function toFailedResult(error: unknown): CaseResult {
  const lines = String((error as Error)?.stack).split('\n');
  return { problems: [`the case itself failed: ${lines.slice(0, 4).join(' ')}`], isRejected: false };
}

function describe(error: unknown): string {
  try {
    return `${(error as Error).name}: ${(error as Error).message}`;
  } catch {
    return 'what cannot be read';
  }
}

function describeCase({ scenario, hostile, stop, mode, undo, isBare }: HostileCase): string {
  const what = hostile
    .map(({ entryPoint, value }) => `${value.name} as ${entryPoint.name} (${entryPoint.kind})`)
    .join(', ');
  return `${scenario}, ${stop}, ${mode}${undo ? ', undo' : ''}${isBare ? ', bare' : ''}: ${what}`;
}

/** Every value at every entry point in every scenario, each stopped in one way. */
export function* matrix(): Generator<HostileCase> {
  let count = 0;
  for (const entryPoint of entryPoints) {
    for (const value of values) {
      // A clock that takes for ever to read would be read at every step.
      if (entryPoint.kind === 'clock' && value.isHeavy) continue;
      for (const scenario of entryPoint.scenarios) {
        // Every stop and mode occurs many times for every entry point, value and scenario; all combinations would take hours.
        const [stop, mode] = [stops[count % stops.length]!, modes[count % modes.length]!];
        count += 1 + (count % 5 === 0 ? 1 : 0);
        yield {
          scenario,
          hostile: [{ entryPoint, value }],
          stop,
          mode,
          undo: count % 2 === 0,
          isBare: count % 7 === 0,
        };
      }
    }
  }
}

/** Several at a time, in any combination, stopped at any moment. */
export function* combinations(count: number, random: () => number): Generator<HostileCase> {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const light = values.filter(({ isHeavy }) => !isHeavy);
  for (let index = 0; index < count; index++) {
    const first = pick(entryPoints);
    const scenario = pick(first.scenarios);
    const others = entryPoints.filter(
      ({ scenarios, kind }) => scenarios.includes(scenario) && kind !== 'clock' && kind !== 'setting',
    );
    const chosen: EntryPoint[] = [first];
    // A failing clock explains every other problem, so nothing is combined with it.
    while (first.kind !== 'clock' && random() < 0.5 && chosen.length < 4) chosen.push(pick(others));
    const valueFor = (): HostileValue => (random() < 0.01 && first.kind !== 'clock' ? pick(values) : pick(light));
    const hostile = chosen.map((entryPoint) => ({ entryPoint, value: valueFor() }));
    yield { scenario, hostile, stop: pick(stops), mode: pick(modes), undo: random() < 0.5, isBare: random() < 0.3 };
  }
}
