// Hands hostile values in at every place where a user's value enters, and says what came of it.
import { flushMicrotasks } from '@whoa/core/testing';
import { type EntryPoint, entryPoints } from './entry-points.ts';
import { modes, play, type SeedReport, type Story, stops } from './run-scenario.ts';
import { endless, type HostileValue, values } from './values.ts';

export interface HostileReport {
  histories: number;
  /** What was refused where it was handed in. */
  refused: number;
  readonly values: number;
  readonly entryPoints: number;
  /** Different values in different places in different scenes. */
  cells: number;
  /** How many of those there are for each kind of place, and for each scene. */
  readonly kinds: Record<string, number>;
  readonly scenarios: Record<string, number>;
  seconds: number;
  readonly problems: { readonly what: string; count: number; readonly first: string }[];
}

export interface HostileOptions {
  /** Only stories whose name holds this. */
  readonly only?: string;
  readonly maxSeconds?: number;
}

/** Takes over what a process does with rejections and exceptions that nobody handles: one campaign a process. */
export async function playStories(stories: Iterable<Story>, options: HostileOptions = {}): Promise<HostileReport> {
  const { only = '', maxSeconds = Infinity } = options;
  let current = '';
  const report: HostileReport = {
    histories: 0,
    refused: 0,
    values: values.length,
    entryPoints: entryPoints.length,
    cells: 0,
    kinds: {},
    scenarios: {},
    seconds: 0,
    problems: [],
  };
  const printError = (what: string): void => {
    const known = report.problems.find((problem) => problem.what === what);
    if (known === undefined) report.problems.push({ what, count: 1, first: current });
    else known.count++;
  };
  process.on('unhandledRejection', (error) => printError(`unhandled rejection: ${describe(error)}`));
  process.on('uncaughtException', (error) => printError(`uncaught: ${describe(error)}`));
  process.on('warning', () => {});
  // The recorder copies with Node's `structuredClone`, which reads what it likes.
  endless.onRead = () => new Error('read').stack!.includes('structuredClone') || printError('it is read without end');
  const cells = new Set<string>();
  const began = performance.now();
  for (const story of stories) {
    current = nameOf(story);
    report.seconds = Math.round((performance.now() - began) / 1_000);
    if (report.seconds >= maxSeconds) break;
    if (!current.includes(only)) continue;
    const result = await play(story).catch(whatFailed);
    await flushMicrotasks();
    for (const problem of result.problems) printError(problem);
    report.histories++;
    if (result.isRefused) report.refused++;
    for (const { entryPoint, value } of story.hostile) {
      const cell = `${entryPoint.name} × ${value.name} × ${story.scenario}`;
      if (cells.has(cell)) continue;
      cells.add(cell);
      report.kinds[entryPoint.kind] = (report.kinds[entryPoint.kind] ?? 0) + 1;
      report.scenarios[story.scenario] = (report.scenarios[story.scenario] ?? 0) + 1;
    }
  }
  report.cells = cells.size;
  return report;
}

function whatFailed(error: unknown): SeedReport {
  const lines = String((error as Error)?.stack).split('\n');
  return { problems: [`the story itself failed: ${lines.slice(0, 4).join(' ')}`], isRefused: false };
}

function describe(error: unknown): string {
  try {
    return `${(error as Error).name}: ${(error as Error).message}`;
  } catch {
    return 'what cannot be read';
  }
}

function nameOf({ scenario, hostile, stop, mode, undo, isBare }: Story): string {
  const what = hostile
    .map(({ entryPoint, value }) => `${value.name} as ${entryPoint.name} (${entryPoint.kind})`)
    .join(', ');
  return `${scenario}, ${stop}, ${mode}${undo ? ', undo' : ''}${isBare ? ', bare' : ''}: ${what}`;
}

/** Every value at every place in every scene, each stopped in one of the ways. */
export function* matrix(): Generator<Story> {
  let count = 0;
  for (const entryPoint of entryPoints) {
    for (const value of values) {
      // A time that takes for ever to read is asked for at every step.
      if (entryPoint.kind === 'clock' && value.isHeavy) continue;
      for (const scenario of entryPoint.scenarios) {
        // Every stop and mode comes round for every place, value and scene many times; their products would take hours.
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

/** Several at once, in any combination, stopped at any moment. */
export function* combinations(histories: number, random: () => number): Generator<Story> {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const light = values.filter(({ isHeavy }) => !isHeavy);
  for (let index = 0; index < histories; index++) {
    const first = pick(entryPoints);
    const scenario = pick(first.scenarios);
    const others = entryPoints.filter(
      ({ scenarios, kind }) => scenarios.includes(scenario) && kind !== 'clock' && kind !== 'setting',
    );
    const chosen: EntryPoint[] = [first];
    // A clock that fails is not hidden: what else goes wrong then is its doing.
    while (first.kind !== 'clock' && random() < 0.5 && chosen.length < 4) chosen.push(pick(others));
    const valueFor = (): HostileValue => (random() < 0.01 && first.kind !== 'clock' ? pick(values) : pick(light));
    const hostile = chosen.map((entryPoint) => ({ entryPoint, value: valueFor() }));
    yield { scenario, hostile, stop: pick(stops), mode: pick(modes), undo: random() < 0.5, isBare: random() < 0.3 };
  }
}
