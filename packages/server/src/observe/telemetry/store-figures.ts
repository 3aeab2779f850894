import type { World } from '@whoa/core/embed';
import type { TaskStore } from '@whoa/tasks';
import { createTotals } from '@whoa/tasks/internal';
import type { Meter } from './meter.ts';
import { METRICS, type MetricName } from './metrics.ts';

const EVERY_MS = 15_000;
/** Until it has a first reading, a process asks again after this time: another one may be reading for it. */
const FIRST_MS = 1_000;
/** One process reads for all, when the last reading is older than this. */
const MAX_AGE_MS = 10_000;
/** How much it reads each time: this many queues, in so many requests. With more, figures are lower bounds. */
const PAGE = 50;
const MAX_PAGES = 20;

interface StoreFiguresOptions {
  readonly store: TaskStore;
  readonly meter: Meter;
  readonly world: World;
  readonly onError: (error: unknown) => void;
}

type Figure = [name: string, value: number, ...labels: string[]];

/**
 * Shows figures of the whole store, the same in every process: what waits, and how tasks ended. Ends are counted by a consumer of
 * the feed, once each, wherever they were written.
 */
export async function showFigures({ store, meter, world, onError }: StoreFiguresOptions): Promise<AsyncDisposable> {
  let isStopped = false;
  let nextMs = FIRST_MS;
  let timer: Disposable | undefined;
  const show = createShow(meter);
  const totals = createTotals(store, { world, onError });
  const measure = async (): Promise<void> => {
    const found = await store.findOnce(MAX_AGE_MS, () => readFigures(store, () => isStopped));
    if (found === undefined || isStopped) return;
    nextMs = EVERY_MS;
    show(found);
  };
  const repeat = async (): Promise<void> => {
    await measure().catch(onError);
    if (!isStopped) timer = world.clock.setTimer(nextMs, () => void (reading = repeat()), { keepAlive: false });
  };
  await totals.start();
  let reading = repeat();
  return {
    async [Symbol.asyncDispose]() {
      isStopped = true;
      timer?.[Symbol.dispose]();
      await totals[Symbol.asyncDispose]();
      await reading;
    },
  };
}

/** Shows one reading after another. A gauge that is no longer in it is 0; a counter only rises. */
function createShow(meter: Meter): (found: readonly Figure[]) => void {
  const shown = new Map<string, Figure>();
  return (found) => {
    const gone = new Map(shown);
    for (const figure of found) {
      const [name, value, ...labels] = figure;
      const key = JSON.stringify([name, ...labels]);
      const series = meter.series(name as MetricName, ...labels);
      const before = shown.get(key)?.[1] ?? 0;
      if (METRICS[name as MetricName].kind === 'gauge') series.set(value);
      else if (value > before) series.add(value - before);
      shown.set(key, figure);
      gone.delete(key);
    }
    for (const [name, , ...labels] of gone.values())
      if (METRICS[name as MetricName].kind === 'gauge') meter.series(name as MetricName, ...labels).set(0);
  };
}

async function readFigures(store: TaskStore, isStopped: () => boolean): Promise<Figure[] | undefined> {
  const ready = new Map<string, { tasks: number; oldestMs: number }>();
  for (let pages = 0, cursor: string | undefined; pages === 0 || (cursor && pages < MAX_PAGES); pages++) {
    if (isStopped()) return undefined;
    const { queues, now, next } = await store.queues({ limit: PAGE, ...(cursor && { cursor }) });
    for (const { agent, ready: more, oldestReadyAt } of queues) {
      const { tasks, oldestMs } = ready.get(agent) ?? { tasks: 0, oldestMs: 0 };
      ready.set(agent, { tasks: tasks + more, oldestMs: Math.max(oldestMs, now - oldestReadyAt) });
    }
    cursor = next;
  }
  const { openQuestions, oldestQuestionAt, asking, parked, now } = await store.figures();
  const toSeconds = (since = now): number => Math.max(0, now - since) / 1_000;
  const [ages, totals] = [await store.feed.ages(), await store.feed.totals()];
  return [
    ...[...ready].flatMap(([agent, { tasks, oldestMs }]): Figure[] => [
      ['whoa.ready.tasks', tasks, agent],
      ['whoa.oldest.ready', oldestMs / 1_000, agent],
    ]),
    ['whoa.open.questions', openQuestions],
    ['whoa.oldest.question', toSeconds(oldestQuestionAt)],
    ['whoa.asking.tasks', asking],
    ['whoa.parked.tasks', parked],
    ...ages.map(({ consumer, oldestAt }): Figure => ['whoa.feed.age', toSeconds(oldestAt), consumer]),
    ...Object.entries(totals).map(([name, n]): Figure => ['whoa.task.ended', n, ...(JSON.parse(name) as string[])]),
  ];
}
