import type { Runner, TaskStore } from '@whoa/tasks';
import type { Violation } from '../../packages/core/src/testing/history.ts';
import { DeliveryChecks } from './delivery-checks.ts';
import { Digest } from './digest.ts';
import { SimulatedHistory } from './history.ts';
import { untilQuiet } from './idle.ts';
import { Wide } from './mixed.ts';
import { type Commit, connect, type Faults } from './network.ts';
import { judgePoison, Poison } from './poison.ts';
import { SimulatedProcess } from './process.ts';
import { type Chance, createChance } from './random.ts';
import type { Stage } from './stage.ts';
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
  /** For the ground `upgrade`. */
  readonly releases?: Releases | undefined;
  readonly ground: Ground;
  readonly trace?: boolean;
}

/**
 * `delivery`: tasks and what users do to them. `wide`: readers, a chat and people who are asked, too, in less time.
 * `pauses`: as `delivery`, and processes are stopped or sleep just after they have asked the store for something.
 * `upgrade`: as `delivery`, on SQLite, with workers of two releases, which roll back and forth, and a migration.
 * `poison`: tasks that kill their worker, next to harmless ones; in half of the histories nothing else fails.
 */
export const grounds = ['delivery', 'wide', 'pauses', 'upgrade', 'poison'] as const;
export type Ground = (typeof grounds)[number];

export interface SeedReport {
  readonly violations: readonly Violation[];
  /** What happened, in a few characters: the same seed gives the same. */
  readonly digest: string;
  readonly tasks: number;
}

const LEASE_MS = 3_000;
/** More and less often than the store takes for an outage. */
const PARK_AFTER_MS = [0, 0, 300, 2_000, 10_000];
const POLLS_MS = [500, 1_000, 2_000] as const;
/** For how long faults strike, and within which time users begin what they do. */
const TIMES = {
  delivery: { hostileMs: 40_000, workMs: 20_000 },
  wide: { hostileMs: 20_000, workMs: 6_000 },
  pauses: { hostileMs: 40_000, workMs: 20_000 },
  upgrade: { hostileMs: 40_000, workMs: 20_000 },
  poison: { hostileMs: 60_000, workMs: 3_000 },
} as const;
/** Where processes pause, they do once in so many requests. */
const PAUSE_ONE_IN = 40;
/** Requests that were given up arrive within this time. After it nothing is to come of what users did. */
const REST_MS = 7_000;
/** At least so long is everything calm: workers that were stopped wake up, and find out what they missed. */
const WAKE_MS = 3_000;
/** Ladder, bounds of tools, leases and delays after deaths: by then everything has ended. */
const CALM_MS = 150_000;

/** Far more happens in no history: whoever goes on for so long never comes to rest. */
const MAX_MOMENTS = 20_000;

const RELEASES = ['before', 'after'] as const;
const FAULTS = ['die', 'stop', 'cut-off', 'down', 'clock', 'start', 'shut-down', 'sleep'] as const;
/** Where tasks kill their workers, other faults kill none, so that each crash has a known cause. */
const HARMLESS_FAULTS = ['stop', 'stop', 'cut-off', 'down'] as const;
const MAX_HARMLESS_FAULTS = 24;

/** Plays one history: faults for a while, then none, and everything must end. */
export async function simulateSeed(seed: number, parts: Parts): Promise<SeedReport> {
  await using simulation = new Simulation(seed, parts);
  return await simulation.play();
}

class Simulation implements AsyncDisposable {
  readonly #parts: Parts;
  readonly #chance: Chance;
  readonly #clock: InstanceType<Testing['VirtualClock']>;
  readonly #store: TaskStore;
  readonly #history: SimulatedHistory;
  readonly #checks: DeliveryChecks;
  readonly #faults: Faults;
  readonly #stage: Stage;
  readonly #wide: Wide | undefined;
  readonly #upgrade: Upgrade | undefined;
  readonly #visitors: SimulatedProcess[] = [];
  readonly #workers: Worker[] = [];
  /** Only tasks do harm. */
  readonly #isQuiet: boolean;
  #shiftMs = 0;
  #started = 0;
  readonly #digest = new Digest();
  #moments = 0;
  /** What users are going to do, and what they do now. */
  #plans = 0;

  constructor(seed: number, parts: Parts) {
    this.#parts = parts;
    this.#chance = createChance(seed);
    this.#faults = {
      isDown: false,
      cutOff: new Set(),
      isCalm: false,
      slowOneIn: this.#chance.pick([8, 60, 60]),
      lostOneIn: this.#chance.pick([15, 80, 80]),
    };
    this.#isQuiet = parts.ground === 'poison' && this.#chance.oneIn(2);
    this.#faults.isCalm = this.#isQuiet;
    this.#clock = new parts.testing.VirtualClock();
    const clock = this.#clock;
    let ids = 0;
    const rules = this.#chance.oneIn(3) ? { maxRunningPerTenant: 1 + this.#chance.below(2) } : {};
    const world = {
      clock: {
        now: () => clock.now() + this.#shiftMs,
        setTimer: (ms: number, callback: () => void) => clock.setTimer(ms, callback),
      },
      createId: () => `store-${++ids}`,
      random: () => this.#chance.next(),
    };
    this.#upgrade = parts.releases && new Upgrade(parts.releases, { world, rules });
    this.#store = this.#upgrade?.after.store ?? parts.tasks.createMemoryStore({ ...rules, world });
    this.#history = new SimulatedHistory(this.#store, rules);
    this.#checks = new DeliveryChecks({
      store: this.#store,
      leaseMs: LEASE_MS,
      now: () => clock.now(),
      after: (ms, happen) => void clock.setTimer(ms, happen),
      tenantOf: (id) => this.#history.tenantOf(id),
      violations: this.#history.violations,
    });
    const client = new SimulatedProcess('client', clock, this.#chance);
    this.#stage = this.#createCheckHarness(this.#connect(client, this.#upgrade?.[this.#chance.pick(RELEASES)]));
    if (parts.ground === 'wide') this.#wide = new Wide(this.#stage);
  }

  async play(): Promise<SeedReport> {
    for (let i = 0; i < 2; i++) this.#startWorker();
    if (this.#parts.ground === 'poison') new Poison(this.#stage).plan();
    else if (this.#wide?.plan() ?? true) new Users(this.#stage).plan();
    this.#planFaults();
    if (this.#upgrade !== undefined) this.#planUpgrade(this.#upgrade);
    await this.#advance(TIMES[this.#parts.ground].hostileMs, this.#isOverFor(REST_MS));
    this.#calmDown();
    await this.#advance(CALM_MS, this.#isOverFor(WAKE_MS));
    await this.#history.look({ all: true });
    await this.#history.journals();
    this.#checks.judgeClaims();
    if (this.#parts.ground === 'poison')
      await judgePoison(this.#history, { store: this.#store, isQuiet: this.#isQuiet });
    await this.#checks.settled();
    await this.#wide?.judge();
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

  #createCheckHarness(client: TaskStore): Stage {
    return {
      tasks: this.#parts.tasks,
      chance: this.#chance,
      clock: this.#clock,
      store: this.#store,
      client,
      workers: this.#workers,
      workMs: TIMES[this.#parts.ground].workMs,
      violations: this.#history.violations,
      visit: (name) => {
        const process = new SimulatedProcess(name, this.#clock, this.#chance);
        this.#visitors.push(process);
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

  /** Whether everything has ended that users asked for, and has for a while. */
  #isOverFor(ms: number): () => Promise<boolean> {
    let since = this.#clock.now();
    return async () => {
      const isDone = this.#plans === 0 && (this.#wide?.isDone ?? true) && (ms > WAKE_MS || this.#checks.areClaimsOver);
      const isOver = (await this.#history.look()) && isDone;
      if (!isOver) since = this.#clock.now();
      return isOver && this.#clock.now() - since >= ms;
    };
  }

  #connect(process: SimulatedProcess, release?: Release): TaskStore {
    const { store, tasks } = release ?? { store: this.#store, tasks: this.#parts.tasks };
    return connect(process, {
      store,
      clock: this.#clock,
      chance: this.#chance,
      faults: this.#faults,
      tasks,
      checks: this.#checks,
      onSent: () => this.#pauseAtChance(process),
      onCommit: (commit) => {
        this.#digest.add(toldShortly(commit, this.#clock.now()));
        if (this.#parts.trace) {
          const { name, args, answer, error } = commit;
          const said = JSON.stringify(answer ?? String(error)) ?? '';
          console.log(`${this.#clock.now() % 1_000_000} ${process.name} ${name} ${JSON.stringify(args)} → ${said}`);
        }
        this.#history.commit(commit);
        this.#checks.committed(commit);
        this.#wide?.committed(commit);
      },
    });
  }

  #startWorker(): void {
    const chance = this.#chance;
    const process = new SimulatedProcess(`w${++this.#started}`, this.#clock, chance);
    const release = this.#upgrade?.starting(process.name);
    const { core, tasks } = { ...this.#parts, ...release };
    const approvals = this.#wide && tasks.createTaskApprovals({ parkAfterMs: chance.pick(PARK_AFTER_MS) });
    const agents = createWork({
      core,
      process,
      approvals,
      chance: this.#chance,
      onEffect: (effect) => {
        this.#history.effect(effect);
        this.#checks.effect(effect);
        this.#wide?.effect(effect);
      },
      onKilled: () => this.#at(chance.below(LEASE_MS), () => this.#startWorker()),
    });
    const runner = tasks.createRunner({
      store: this.#connect(process, release),
      agents,
      ...(approvals && { approvals }),
      worker: process.name,
      leaseMs: LEASE_MS,
      pollIntervalMs: this.#chance.pick(POLLS_MS),
      hooks: {
        'task-start': (event) => this.#checks.reported(process, event),
        'task-end': (event) => {
          this.#checks.reported(process, event);
          this.#history.reported(event.id, event.status);
        },
      },
      world: process.world,
    });
    this.#workers.push({ process, runner });
    // A ring for a worker that is gone is a ring all the same.
    this.#try(() => this.#store.watch({ worker: process.name }, (hint) => this.#checks.told(hint)));
    this.#try(() => runner.serve({ concurrency: (this.#parts.ground === 'poison' ? 3 : 1) + chance.below(4) }));
  }

  #planFaults(): void {
    const chance = this.#chance;
    const isPoison = this.#parts.ground === 'poison';
    const count = this.#isQuiet ? 0 : chance.below(isPoison ? MAX_HARMLESS_FAULTS : 6);
    for (let i = 0; i < count; i++) {
      const at = chance.below(TIMES[this.#parts.ground].hostileMs);
      const fault = chance.pick(isPoison ? HARMLESS_FAULTS : FAULTS);
      this.#at(at, () => this.#strike(fault));
    }
  }

  /** Workers are replaced by those of the other release, once or there and back; meanwhile the store is migrated. */
  #planUpgrade(upgrade: Upgrade): void {
    const chance = this.#chance;
    const { hostileMs } = TIMES.upgrade;
    let at = 0;
    for (const release of chance.oneIn(3) ? (['after', 'before', 'after'] as const) : (['after'] as const)) {
      at += chance.below(hostileMs / 4);
      this.#at(at, () => {
        upgrade.starts = release;
        const living = this.#workers.filter(({ process }) => !process.isDead);
        for (const worker of living) this.#at(chance.below(LEASE_MS), () => this.#replace(worker));
      });
    }
    for (const mode of ['prepare', 'finish'] as const) {
      this.#at(chance.below(hostileMs), () => upgrade.migrate(mode));
    }
  }

  #replace(worker: Worker): void {
    this.#strike(this.#chance.oneIn(3) ? 'die' : 'shut-down', worker);
  }

  #strike(fault: (typeof FAULTS)[number], worker: Worker = this.#chance.pick(this.#workers)): void {
    const chance = this.#chance;
    const forMs = chance.below(LEASE_MS * 3);
    switch (fault) {
      case 'die':
        worker.process.die();
        this.#at(chance.below(LEASE_MS * 2), () => this.#startWorker());
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
        if (this.#visitors.length > 0) this.#cutOff(chance.pick(this.#visitors), chance.below(LEASE_MS * 3));
        break;
      case 'down':
        this.#faults.isDown = true;
        this.#at(forMs, () => (this.#faults.isDown = false));
        break;
      case 'clock':
        this.#shiftMs += chance.below(4 * LEASE_MS) - 2 * LEASE_MS;
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

  /** A process that is stopped before the response comes reads it long after the store sent it. */
  #pauseAtChance(process: SimulatedProcess): void {
    const chance = this.#chance;
    if (this.#parts.ground !== 'pauses' || this.#faults.isCalm || !chance.oneIn(PAUSE_ONE_IN)) return;
    if (chance.oneIn(2)) process.stop();
    else process.sleep();
    // A real process acts on what it reads first before its timers fire.
    const inTurn = (missed: () => void): void => void this.#clock.setTimer(0, missed);
    this.#at(chance.below(LEASE_MS * 3), () => process.goOn(inTurn));
  }

  #cutOff({ name }: SimulatedProcess, forMs: number): void {
    this.#faults.cutOff.add(name);
    this.#at(forMs, () => this.#faults.cutOff.delete(name));
  }

  /** Faults stop: whoever lives goes on, and at least one does. */
  #calmDown(): void {
    this.#faults.isCalm = true;
    this.#faults.isDown = false;
    this.#faults.cutOff.clear();
    for (const { process } of this.#workers) process.goOn();
    if (this.#upgrade !== undefined) this.#upgrade.starts = 'after';
    // One of an older release is of no use once the store has the next format.
    const isOfUse = ({ process }: Worker): boolean => !process.isDead && !this.#upgrade?.isOlder(process.name);
    if (!this.#workers.some(isOfUse)) this.#startWorker();
  }

  #at(ms: number, happen: () => unknown): void {
    this.#clock.setTimer(ms, () => this.#try(() => Promise.resolve(happen())));
  }

  /** What users do may fail: they are users. */
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

  /** Moves the clock from event to event, until a moment or until told to end. */
  async #advance(ms: number, isOver: () => boolean | Promise<boolean>): Promise<boolean> {
    const end = this.#clock.now() + ms;
    let looked = this.#clock.now();
    await untilQuiet();
    this.#clock.setTimer(ms, () => {});
    while (this.#clock.now() < end) {
      if (!this.#clock.fireNext()) break;
      await untilQuiet();
      if (++this.#moments > MAX_MOMENTS) {
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

/** What must be the same each time: what was asked when, by which attempt, and how it went. */
function toldShortly({ name, args, answer, error }: Commit, now: number): string {
  const { id = '', epoch = 0 } = args[0] as { id?: string; epoch?: number };
  const { answer: said = '', tasks = [], status = '' } = (answer ?? {}) as Record<string, never>;
  const { code = '' } = (error ?? {}) as { code?: string };
  return `${now} ${name} ${id} ${epoch} ${said} ${(tasks as readonly unknown[]).length} ${status} ${code}`;
}
