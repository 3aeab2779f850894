import type { VirtualClock } from '@whoa/core/testing';
import type { TaskStore } from '@whoa/tasks';
import type { Hint } from '@whoa/tasks/store';
import type { DeliveryChecks } from './delivery-checks.ts';
import type { SimulatedProcess } from './process.ts';
import type { Random } from './random.ts';

type Tasks = typeof import('@whoa/tasks');

/** The faults that the network may have. */
export interface Faults {
  /** No request reaches the store. */
  isDown: boolean;
  /** Processes that are cut off in both directions. */
  readonly cutOff: Set<string>;
  /** No faults: everything arrives, in order, soon. */
  isCalm: boolean;
  /** One transfer in this many takes seconds. */
  readonly slowOneIn: number;
  /** One message in this many is lost. */
  readonly lostOneIn: number;
  readonly bus: BusFaults;
}

/**
 * What happens to hints: some are lost, late or doubled while there are faults, or every hint is lost, or doubled, late and out of
 * order, until the end.
 */
export const BUS_FAULTS = ['some', 'drops', 'disorders'] as const;
export type BusFaults = (typeof BUS_FAULTS)[number];

export interface Commit {
  readonly name: string;
  readonly args: readonly unknown[];
  readonly answer?: unknown;
  readonly error?: unknown;
}

interface NetworkOptions {
  readonly store: TaskStore;
  readonly clock: VirtualClock;
  readonly random: Random;
  readonly faults: Faults;
  readonly tasks: Pick<Tasks, 'StoreBusyError' | 'UnknownOutcomeError'>;
  readonly checks: DeliveryChecks;
  /** Called when a request is sent. */
  readonly onSent: () => void;
  /** Called for every operation of the store, in order. */
  readonly onCommit: (commit: Commit) => void;
}

const READS = new Set(['get', 'find', 'list', 'read', 'conversation', 'load', 'held']);
const TIMEOUT_MS = 1_000;
/** How late a bus that disorders hints delivers them. */
const MAX_LATE_MS = 2_000;

/** The store as one process reaches it: requests, responses and hints are late, lost, doubled and out of order. */
export function connect(process: SimulatedProcess, options: NetworkOptions): TaskStore {
  const { store, clock, random, faults, tasks, checks, onSent, onCommit } = options;
  const wait = (ms: number): Promise<void> => new Promise((resolve) => clock.setTimer(ms, resolve));
  const isCutOff = (): boolean => faults.isDown || faults.cutOff.has(process.name);
  const transitMs = (): number => {
    if (faults.isCalm) return 1;
    if (random.oneIn(faults.slowOneIn)) return random.below(5_000);
    return random.below(8);
  };

  async function runOperation(name: string, args: readonly unknown[]): Promise<Commit> {
    const operation = Reflect.get(store, name) as (...given: unknown[]) => Promise<unknown>;
    let commit: Commit;
    try {
      commit = { name, args, answer: await operation.apply(store, args as unknown[]) };
    } catch (error) {
      commit = { name, args, error };
    }
    onCommit(commit);
    return commit;
  }

  function unknownOutcome(name: string, args: readonly unknown[]): Error {
    const { nonce } = (args.find((one) => typeof one === 'object' && one !== null && 'nonce' in one) ?? {}) as {
      nonce?: string;
    };
    return new tasks.UnknownOutcomeError(name, nonce === undefined ? {} : { nonce });
  }

  async function request(name: string, args: readonly unknown[]): Promise<unknown> {
    const isLost = !faults.isCalm && random.oneIn(faults.lostOneIn);
    // Its sender gives it up, and it still arrives.
    const isLate = !faults.isCalm && !READS.has(name) && random.oneIn(faults.lostOneIn);
    if (isLate) {
      const lateMs = random.below(5_000);
      clock.setTimer(TIMEOUT_MS + lateMs, () => void runOperation(name, args));
      await wait(TIMEOUT_MS);
      throw unknownOutcome(name, args);
    }
    await wait(transitMs());
    if (isCutOff() || isLost) {
      await wait(TIMEOUT_MS);
      throw new tasks.StoreBusyError(`${name} did not reach the store`);
    }
    const commit = await runOperation(name, args);
    await wait(transitMs());
    if (isCutOff() || (!faults.isCalm && random.oneIn(faults.lostOneIn))) {
      await wait(TIMEOUT_MS);
      if (READS.has(name)) throw new tasks.StoreBusyError(`the answer to ${name} was lost`);
      throw unknownOutcome(name, args);
    }
    if ('error' in commit) throw commit.error;
    return commit.answer;
  }

  /** A response only reaches a process that runs: not while it is suspended, and never after it died. */
  function ask(name: string, args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (process.isDead) return;
      const sentAt = process.world.clock.now();
      checks.sent(process, name, args);
      onSent();
      request(name, args).then(
        (answer) =>
          process.deliver(() => {
            checks.answered(process, { name, args, answer, sentAt });
            resolve(answer);
          }),
        (error: unknown) =>
          process.deliver(() => {
            checks.answered(process, { name, args, error, sentAt });
            reject(error as Error);
          }),
      );
    });
  }

  function watch(filter: Parameters<TaskStore['watch']>[0], listener: (hint: Hint) => void): Promise<AsyncDisposable> {
    const arrive = (hint: Hint): void => {
      if (isCutOff()) return;
      process.deliver(() => {
        checks.receivedHint(process, hint);
        listener(hint);
      });
    };
    return store.watch(filter, (hint) => {
      if (faults.bus === 'drops') return;
      if (faults.bus === 'disorders') {
        const copies = 1 + random.below(3);
        for (let i = 0; i < copies; i++) clock.setTimer(random.below(MAX_LATE_MS), () => arrive(hint));
        return;
      }
      if (isCutOff() || (!faults.isCalm && random.oneIn(10))) return;
      clock.setTimer(transitMs(), () => arrive(hint));
      if (!faults.isCalm && random.oneIn(20)) clock.setTimer(transitMs(), () => arrive(hint));
    });
  }

  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      if (name === 'watch') return watch;
      if (name === 'show') {
        return (words: Parameters<TaskStore['show']>[0]) => {
          if (!process.isDead && !isCutOff()) store.show(words);
        };
      }
      if (name === Symbol.asyncDispose) return () => Promise.resolve();
      return (...args: unknown[]) => ask(String(name), args);
    },
  });
}
