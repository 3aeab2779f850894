import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { ChildOptions, ChildReport } from '../children/tasks.ts';
import type { Creator } from './queue.ts';
import { QUEUES, type QueueName } from './queues.ts';

/** The cost of creating a number of tasks and running them to their ends. */
export interface Cost {
  readonly perSecond: number;
  readonly claimsPerTask: number;
  /** Of the workers, for each task. */
  readonly workerMs: number;
}

export interface TeamOptions extends Partial<Omit<ChildOptions, 'queue' | 'url'>> {
  readonly workers?: number;
}

const ATTEMPT_MS = 120_000;
/** How many creates run at the same time. */
const CREATING = 50;

/** Workers of one queue, each a process, and the process that creates. */
export class Team implements AsyncDisposable {
  readonly #creator: Creator;
  readonly #children: readonly ChildProcess[];
  readonly #reports: ChildReport[] = [];
  readonly #waiting: (() => void)[] = [];
  #onReport: (report: ChildReport) => void = () => {};

  private constructor(creator: Creator, children: readonly ChildProcess[]) {
    this.#creator = creator;
    this.#children = children;
    for (const [i, child] of children.entries()) {
      child.on('message', (report: ChildReport) => {
        this.#reports[i] = report;
        this.#onReport(report);
        for (const resume of this.#waiting.splice(0)) resume();
      });
    }
  }

  static async start(queue: QueueName, url: string, options: TeamOptions = {}): Promise<Team> {
    const { workers = 1, concurrency = 50, sleepMs = 0, isTimed = false } = options;
    const creator = await QUEUES[queue].openCreator(url);
    const about = JSON.stringify({ queue, url, concurrency, sleepMs, isTimed } satisfies ChildOptions);
    const script = join(import.meta.dirname, '../children/tasks.ts');
    const children = Array.from({ length: workers }, () => fork(script, [about]));
    const team = new Team(creator, children);
    // The first report shows that the worker is ready.
    await Promise.all(children.map((child) => once(child, 'message')));
    return team;
  }

  /** Creates `count` tasks, at most `outstanding` before they have ended, and waits until all have ended. */
  async run(count: number, { outstanding = count }: { readonly outstanding?: number } = {}): Promise<Cost> {
    const before = this.#sums();
    const from = performance.now();
    let created = 0;
    const isFull = (): boolean => created - (this.#sums().ended - before.ended) >= outstanding;
    const create = async (): Promise<void> => {
      while (created < count) {
        if (isFull()) await this.#nextReport();
        else {
          created++;
          await this.#creator.create();
        }
      }
    };
    await Promise.all(Array.from({ length: CREATING }, create));
    await this.#until(() => this.#sums().ended - before.ended >= count);
    const seconds = (performance.now() - from) / 1_000;
    const { claims, cpuMs } = this.#sums();
    return {
      perSecond: count / seconds,
      claimsPerTask: (claims - before.claims) / count,
      workerMs: (cpuMs - before.cpuMs) / count,
    };
  }

  /** Milliseconds from the create of one task to its start, in another, idle process. */
  async timeToStart(): Promise<number> {
    const { ended } = this.#sums();
    const started = new Promise<string>((resolve) => {
      this.#onReport = ({ startedAt }) => startedAt !== undefined && resolve(startedAt);
    });
    const from = process.hrtime.bigint();
    await this.#creator.create();
    const ms = Number(BigInt(await started) - from) / 1e6;
    await this.#until(() => this.#sums().ended > ended);
    return ms;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
    await this.#creator[Symbol.asyncDispose]();
  }

  #nextReport(): Promise<void> {
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  #sums(): ChildReport {
    const sum = (field: 'ended' | 'claims' | 'cpuMs'): number =>
      this.#reports.reduce((total, report) => total + report[field], 0);
    return { ended: sum('ended'), claims: sum('claims'), cpuMs: sum('cpuMs') };
  }

  #until(isDone: () => boolean): Promise<void> {
    if (isDone()) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('the tasks did not end')), ATTEMPT_MS);
      this.#onReport = () => {
        if (!isDone()) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
