import type { Runner, TaskStore } from '@whoa/tasks';
import type { Violation } from '../../packages/core/src/testing/history.ts';
import type { SimulationContext } from './context.ts';
import { DeliveryChecks } from './delivery-checks.ts';
import { Digest } from './digest.ts';
import { SimulatedHistory } from './history.ts';
import { untilQuiet } from './idle.ts';
import { Mixed } from './mixed.ts';
import { type BusFaults, type Commit, connect, type Faults } from './network.ts';
import { judgePoison, Poison } from './poison.ts';
import { SimulatedProcess } from './process.ts';
import { Provider } from './provider.ts';
import { createRandom, type Random } from './random.ts';
import { type Release, type Releases, Upgrade } from './upgrade.ts';
import { Users } from './users.ts';
import { createWork } from './work.ts';

type Core = typeof import('@whoa/core');
type Testing = typeof import('@whoa/core/testing');
type Tasks = typeof import('@whoa/tasks');

interface Worker {
  readonly process: SimulatedProcess;
  readonly runner: Runner;
}

interface Parts {
  readonly core: Core;
  readonly testing: Testing;
  readonly tasks: Tasks;
  /** For the profile `upgrade`. */
  readonly releases?: Releases | undefined;
  readonly profile: Profile;
  /** Defaults to `some`. */
  readonly bus?: BusFaults | undefined;
  readonly trace?: boolean;
}

/**
 * - `delivery`: tasks, and what users do to them.
 * - `mixed`: also readers, a chat and approvals, in less time.
 * - `nested`: `mixed`, in which the agent with approvals has sub-agents, two deep, that ask too.
 * - `suspends`: `delivery`, with processes suspended or asleep just after they have sent a request to the store.
 * - `upgrade`: `delivery` on SQLite, with workers of two releases that roll back and forth, and a migration.
 * - `poison`: tasks that kill their worker, next to harmless ones. In half of the runs nothing else fails.
 * - `provider`: `delivery`, with a model provider that is down for a while. In half of the runs nothing else fails.
 */
export const profiles = ['delivery', 'mixed', 'nested', 'suspends', 'upgrade', 'poison', 'provider'] as const;
export type Profile = (typeof profiles)[number];

export interface SeedReport {
  readonly violations: readonly Violation[];
  /** A short summary of the run: the same seed always gives the same one. */
  readonly digest: string;
  readonly tasks: number;
}

const LEASE_MS = 3_000;
/** How long a task waits for an answer before it is parked: shorter and longer than an outage of the store. */
const PARK_AFTER_MS = [0, 0, 300, 2_000, 10_000];
const POLLS_MS = [500, 1_000, 2_000] as const;
/** How long faults are injected, and how long users start new work. */
const TIMES = {
  delivery: { hostileMs: 40_000, workMs: 20_000 },
  mixed: { hostileMs: 20_000, workMs: 6_000 },
  nested: { hostileMs: 20_000, workMs: 6_000 },
  suspends: { hostileMs: 40_000, workMs: 20_000 },
  upgrade: { hostileMs: 40_000, workMs: 20_000 },
  poison: { hostileMs: 60_000, workMs: 3_000 },
  provider: { hostileMs: 40_000, workMs: 15_000 },
} as const;
/** With `suspends`, one request in this many suspends its process. */
const PAUSE_ONE_IN = 40;
/** Requests that their sender gave up arrive within this time, so afterwards no user action is still pending. */
const REST_MS = 7_000;
/** Minimum time without faults: workers that were suspended wake up and learn what they missed. */
const WAKE_MS = 3_000;
/** Covers ladders, tool timeouts, leases and crash backoffs: everything must have ended by then. */
const CALM_MS = 150_000;

/** More steps than any simulated run needs: with so many it never comes to rest. */
const MAX_STEPS = 20_000;

const RELEASES = ['before', 'after'] as const;
const FAULTS = ['die', 'stop', 'cut-off', 'down', 'clock', 'start', 'shut-down', 'sleep'] as const;
/** With `poison`, other faults kill no worker, so that each crash has a known cause. */
const HARMLESS_FAULTS = ['stop', 'stop', 'cut-off', 'down'] as const;
const MAX_HARMLESS_FAULTS = 24;

/** Simulates one seed: with faults for a while, then without, until everything has ended. */
export async function simulateSeed(seed: number, parts: Parts): Promise<SeedReport> {
  await using simulation = new Simulation(seed, parts);
  return await simulation.run();
}

class Simulation implements AsyncDisposable {
  readonly #parts: Parts;
  readonly #random: Random;
  readonly #clock: InstanceType<Testing['VirtualClock']>;
  readonly #store: TaskStore;
  readonly #history: SimulatedHistory;
  readonly #checks: DeliveryChecks;
  readonly #faults: Faults;
  readonly #context: SimulationContext;
  readonly #mixed: Mixed | undefined;
  readonly #upgrade: Upgrade | undefined;
  readonly #provider: Provider | undefined;
  readonly #clients: SimulatedProcess[] = [];
  readonly #workers: Worker[] = [];
  /** Only tasks do harm; no other faults are injected. */
  readonly #isQuiet: boolean;
  #shiftMs = 0;
  #started = 0;
  readonly #digest = new Digest();
  #steps = 0;
  /** User actions that are planned or running. */
  #plans = 0;

  constructor(seed: number, parts: Parts) {
    this.#parts = parts;
    this.#random = createRandom(seed);
    this.#faults = {
      isDown: false,
      cutOff: new Set(),
      isCalm: false,
      slowOneIn: this.#random.pick([8, 60, 60]),
      lostOneIn: this.#random.pick([15, 80, 80]),
      bus: parts.bus ?? 'some',
    };
    this.#isQuiet = (parts.profile === 'poison' || parts.profile === 'provider') && this.#random.oneIn(2);
    if (parts.profile === 'provider') this.#provider = new Provider(this.#random);
    this.#faults.isCalm = this.#isQuiet;
    this.#clock = new parts.testing.VirtualClock();
    const clock = this.#clock;
    let ids = 0;
    const rules = this.#random.oneIn(3) ? { maxRunningPerTenant: 1 + this.#random.below(2) } : {};
    const world = {
      clock: {
        now: () => clock.now() + this.#shiftMs,
        setTimer: (ms: number, callback: () => void) => clock.setTimer(ms, callback),
      },
      createId: () => `store-${++ids}`,
      random: () => this.#random.next(),
    };
    this.#upgrade = parts.releases && new Upgrade(parts.releases, { world, rules });
    this.#store = this.#upgrade?.after.store ?? parts.tasks.createMemoryStore({ ...rules, world });
    this.#history = new SimulatedHistory(this.#store, rules);
    this.#checks = new DeliveryChecks({
      store: this.#store,
      leaseMs: LEASE_MS,
      now: () => clock.now(),
      after: (ms, happen) => void clock.setTimer(ms, happen),
      getTenant: (id) => this.#history.getTenant(id),
      violations: this.#history.violations,
    });
    const client = new SimulatedProcess('client', clock, this.#random);
    this.#context = this.#createContext(this.#connect(client, this.#upgrade?.[this.#random.pick(RELEASES)]));
    if (parts.profile === 'mixed' || parts.profile === 'nested') this.#mixed = new Mixed(this.#context);
  }

  async run(): Promise<SeedReport> {
    for (let i = 0; i < 2; i++) this.#startWorker();
    if (this.#parts.profile === 'poison') new Poison(this.#context).plan();
    else if (this.#mixed?.plan() ?? true) new Users(this.#context).plan();
    this.#planFaults();
    this.#provider?.plan((ms, happen) => this.#at(ms, happen), this.#context.workMs);
    if (this.#upgrade !== undefined) this.#planUpgrade(this.#upgrade);
    await this.#advance(TIMES[this.#parts.profile].hostileMs, this.#isOverFor(REST_MS));
    this.#stopFaults();
    await this.#advance(CALM_MS, this.#isOverFor(WAKE_MS));
    await this.#history.poll({ all: true });
    await this.#history.journals();
    this.#checks.judgeClaims();
    if (this.#parts.profile === 'poison')
      await judgePoison(this.#history, { store: this.#store, isQuiet: this.#isQuiet });
    await this.#checks.settled();
    await this.#mixed?.judge();
    await this.#provider?.judge(this.#store, this.#history.violations, this.#isQuiet);
    await this.#upgrade?.judge();
    const { checkHistory } = this.#parts.testing;
    const violations = [
      ...this.#history.violations,
      ...(this.#upgrade?.violations ?? []),
      ...checkHistory(this.#history.entries),
    ];
    this.#digest.add(`${this.#clock.now()} ${violations.length}`);
    return { violations, digest: this.#digest.text, tasks: this.#history.tasks };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#upgrade?.[Symbol.asyncDispose]();
  }

  #createContext(client: TaskStore): SimulationContext {
    return {
      tasks: this.#parts.tasks,
      random: this.#random,
      clock: this.#clock,
      store: this.#store,
      client,
      workers: this.#workers,
      workMs: TIMES[this.#parts.profile].workMs,
      violations: this.#history.violations,
      connectClient: (name) => {
        const process = new SimulatedProcess(name, this.#clock, this.#random);
        this.#clients.push(process);
        return { process, store: this.#connect(process) };
      },
      userAt: (ms, act) => {
        this.#plans++;
        this.#at(ms, () => act().finally(() => this.#plans--));
      },
      attempt: (act) => this.#try(act),
      retryWhileUnavailable: (ask) => this.#retryWhileUnavailable(ask),
    };
  }

  /** Returns a check for whether everything that users asked for has ended, and has been for `ms`. */
  #isOverFor(ms: number): () => Promise<boolean> {
    let since = this.#clock.now();
    return async () => {
      const isDone = this.#plans === 0 && (this.#mixed?.isDone ?? true) && (ms > WAKE_MS || this.#checks.areClaimsOver);
      const isOver = (await this.#history.poll()) && isDone;
      await this.#provider?.checkCancelling(this.#store, this.#history.violations);
      if (!isOver) since = this.#clock.now();
      return isOver && this.#clock.now() - since >= ms;
    };
  }

  #connect(process: SimulatedProcess, release?: Release): TaskStore {
    const { store, tasks } = release ?? { store: this.#store, tasks: this.#parts.tasks };
    return connect(process, {
      store,
      clock: this.#clock,
      random: this.#random,
      faults: this.#faults,
      tasks,
      checks: this.#checks,
      onSent: () => this.#maybePause(process),
      onCommit: (commit) => {
        this.#digest.add(summarizeCommit(commit, this.#clock.now()));
        if (this.#parts.trace) {
          const { name, args, answer, error } = commit;
          const said = JSON.stringify(answer ?? String(error)) ?? '';
          console.log(`${this.#clock.now() % 1_000_000} ${process.name} ${name} ${JSON.stringify(args)} → ${said}`);
        }
        this.#history.commit(commit);
        this.#checks.committed(commit);
        this.#mixed?.committed(commit);
      },
    });
  }

  #pickTimes(): { parkAfterMs: number; timeoutMs?: number } {
    const parkAfterMs = this.#random.pick(PARK_AFTER_MS);
    // Some people take longer than that to answer.
    return parkAfterMs === 0 ? { parkAfterMs, timeoutMs: 4_000 } : { parkAfterMs };
  }

  #startWorker(): void {
    const random = this.#random;
    const process = new SimulatedProcess(`w${++this.#started}`, this.#clock, random);
    const release = this.#upgrade?.starting(process.name);
    const { core, tasks } = { ...this.#parts, ...release };
    const approvals = this.#mixed && tasks.createTaskApprovals(this.#pickTimes());
    const agents = createWork({
      core,
      process,
      approvals,
      provider: this.#provider,
      isNested: this.#parts.profile === 'nested',
      random: this.#random,
      onEffect: (effect) => {
        this.#history.effect(effect);
        this.#checks.effect(effect);
        this.#mixed?.effect(effect);
      },
      onAsked: (history) => this.#mixed?.sawHistory(history),
      onKilled: () => this.#at(random.below(LEASE_MS), () => this.#startWorker()),
    });
    const runner = tasks.createRunner({
      store: this.#connect(process, release),
      agents,
      ...(approvals && { approvals }),
      ...(this.#provider && { waitForProvider: this.#provider.rule }),
      worker: process.name,
      leaseMs: LEASE_MS,
      pollIntervalMs: this.#random.pick(POLLS_MS),
      hooks: {
        'task-start': (event) => this.#checks.reported(process, event),
        'task-left': (event) => this.#checks.reported(process, event),
        'task-end': (event) => {
          this.#checks.reported(process, event);
          this.#history.reported(event.id, event.status);
        },
      },
      world: process.world,
    });
    this.#workers.push({ process, runner });
    // Observe hints even for workers that are gone.
    this.#try(() => this.#store.watch({ worker: process.name }, (hint) => this.#checks.sentHint(hint)));
    this.#try(() => runner.serve({ concurrency: (this.#parts.profile === 'poison' ? 3 : 1) + random.below(4) }));
  }

  #planFaults(): void {
    const random = this.#random;
    const isPoison = this.#parts.profile === 'poison';
    const count = this.#isQuiet ? 0 : random.below(isPoison ? MAX_HARMLESS_FAULTS : 6);
    for (let i = 0; i < count; i++) {
      const at = random.below(TIMES[this.#parts.profile].hostileMs);
      const fault = random.pick(isPoison ? HARMLESS_FAULTS : FAULTS);
      this.#at(at, () => this.#strike(fault));
    }
  }

  /** Replaces workers with those of the other release, once or back and forth, while the store is migrated. */
  #planUpgrade(upgrade: Upgrade): void {
    const random = this.#random;
    const { hostileMs } = TIMES.upgrade;
    let at = 0;
    for (const release of random.oneIn(3) ? (['after', 'before', 'after'] as const) : (['after'] as const)) {
      at += random.below(hostileMs / 4);
      this.#at(at, () => {
        upgrade.starts = release;
        const living = this.#workers.filter(({ process }) => !process.isDead);
        for (const worker of living) this.#at(random.below(LEASE_MS), () => this.#replace(worker));
      });
    }
    for (const mode of ['prepare', 'finish'] as const) {
      this.#at(random.below(hostileMs), () => upgrade.migrate(mode));
    }
  }

  #replace(worker: Worker): void {
    this.#strike(this.#random.oneIn(3) ? 'die' : 'shut-down', worker);
  }

  #strike(fault: (typeof FAULTS)[number], worker: Worker = this.#random.pick(this.#workers)): void {
    const random = this.#random;
    const forMs = random.below(LEASE_MS * 3);
    switch (fault) {
      case 'die':
        worker.process.die();
        this.#at(random.below(LEASE_MS * 2), () => this.#startWorker());
        break;
      case 'stop':
        worker.process.stop();
        this.#at(forMs, () => worker.process.goOn());
        break;
      case 'sleep':
        worker.process.sleep();
        this.#at(2 * forMs, () => worker.process.goOn());
        break;
      case 'cut-off':
        this.#cutOff(worker.process, forMs);
        if (this.#clients.length > 0) this.#cutOff(random.pick(this.#clients), random.below(LEASE_MS * 3));
        break;
      case 'down':
        this.#faults.isDown = true;
        this.#at(forMs, () => (this.#faults.isDown = false));
        break;
      case 'clock':
        this.#shiftMs += random.below(4 * LEASE_MS) - 2 * LEASE_MS;
        break;
      case 'start':
        this.#startWorker();
        break;
      case 'shut-down':
        this.#try(async () => {
          await worker.runner[Symbol.asyncDispose]();
          worker.process.die();
        });
        this.#at(forMs, () => this.#startWorker());
        break;
    }
  }

  /** Suspends the process before the response arrives, so that it reads it long after the store sent it. */
  #maybePause(process: SimulatedProcess): void {
    const random = this.#random;
    if (this.#parts.profile !== 'suspends' || this.#faults.isCalm || !random.oneIn(PAUSE_ONE_IN)) return;
    if (random.oneIn(2)) process.stop();
    else process.sleep();
    // A real process handles what it reads before its timers fire.
    const inTurn = (missed: () => void): void => void this.#clock.setTimer(0, missed);
    this.#at(random.below(LEASE_MS * 3), () => process.goOn(inTurn));
  }

  #cutOff({ name }: SimulatedProcess, forMs: number): void {
    this.#faults.cutOff.add(name);
    this.#at(forMs, () => this.#faults.cutOff.delete(name));
  }

  /** Stops all faults: every living worker continues, and at least one is started. */
  #stopFaults(): void {
    this.#faults.isCalm = true;
    this.#faults.isDown = false;
    this.#faults.cutOff.clear();
    this.#provider?.stopFaults();
    for (const { process } of this.#workers) process.goOn();
    if (this.#upgrade !== undefined) this.#upgrade.starts = 'after';
    // A worker of an older release cannot use a store with the next format.
    const isOfUse = ({ process }: Worker): boolean => !process.isDead && !this.#upgrade?.isOlder(process.name);
    if (!this.#workers.some(isOfUse)) this.#startWorker();
  }

  #at(ms: number, happen: () => unknown): void {
    this.#clock.setTimer(ms, () => this.#try(() => Promise.resolve(happen())));
  }

  /** User actions may fail. */
  #try(work: () => Promise<unknown>): void {
    work().catch(() => {});
  }

  async #retryWhileUnavailable<T>(ask: () => Promise<T>): Promise<T | undefined> {
    for (let asked = 0; asked < 20; asked++) {
      try {
        return await ask();
      } catch {
        await new Promise<void>((resolve) => this.#clock.setTimer(500, resolve));
      }
    }
    return undefined;
  }

  /** Moves the clock from timer to timer, until `ms` have passed or `isOver` returns true. */
  async #advance(ms: number, isOver: () => boolean | Promise<boolean>): Promise<boolean> {
    const end = this.#clock.now() + ms;
    let looked = this.#clock.now();
    await untilQuiet();
    this.#clock.setTimer(ms, () => {});
    while (this.#clock.now() < end) {
      if (!this.#clock.fireNext()) break;
      await untilQuiet();
      if (++this.#steps > MAX_STEPS) {
        this.#history.violations.push({ promise: 'P2', what: 'it never comes to rest' });
        return true;
      }
      if (this.#clock.now() - looked < 500) continue;
      looked = this.#clock.now();
      if (await isOver()) return true;
    }
    return false;
  }
}

/** The parts that must be the same each time: the request, when it was made, by which attempt, and its result. */
function summarizeCommit({ name, args, answer, error }: Commit, now: number): string {
  const { id = '', epoch = 0 } = (args[0] ?? {}) as { id?: string; epoch?: number };
  const { result = '', tasks = [], status = '' } = (answer ?? {}) as Record<string, never>;
  const { code = '' } = (error ?? {}) as { code?: string };
  return `${now} ${name} ${id} ${epoch} ${result} ${(tasks as readonly unknown[]).length} ${status} ${code}`;
}
