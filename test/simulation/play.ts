import type { Runner, TaskStore } from '@whoa/tasks';
import type { Violation } from '../../packages/core/src/testing/history.ts';
import { type Chance, createChance } from './chance.ts';
import { DeliveryChecks } from './delivery-checks.ts';
import { Digest } from './digest.ts';
import { SimulatedHistory } from './history.ts';
import { type Commit, connect, type Faults } from './network.ts';
import { SimulatedProcess } from './process.ts';
import { untilQuiet } from './quiet.ts';
import { createWork } from './work.ts';

type Core = typeof import('@whoa/core');
type Testing = typeof import('@whoa/core/testing');
type Tasks = typeof import('@whoa/tasks');

interface Parts {
  readonly core: Core;
  readonly testing: Testing;
  readonly tasks: Tasks;
  readonly trace?: boolean;
}

export interface Played {
  readonly violations: readonly Violation[];
  /** What happened, in a few characters: the same seed gives the same. */
  readonly digest: string;
  readonly tasks: number;
}

const TENANTS = ['acme', 'acme', 'globex'] as const;
const LEASE_MS = 3_000;
/** More and less often than the store takes for an outage. */
const POLLS_MS = [500, 1_000, 2_000] as const;
const HOSTILE_MS = 40_000;
const TALK_MS = 5_000;
/** Requests that were given up arrive within this time. After it nothing is to come of what users did. */
const REST_MS = 7_000;
/** At least so long is everything calm: workers that were stopped wake up, and find out what they missed. */
const WAKE_MS = 3_000;
/** Ladder, bounds of tools, leases and delays after deaths: by then everything has ended. */
const CALM_MS = 150_000;

/** Far more happens in no history: whoever goes on for so long never comes to rest. */
const MAX_MOMENTS = 20_000;

const FAULTS = ['die', 'stop', 'cut-off', 'down', 'clock', 'start', 'shut-down', 'sleep'] as const;

/** Plays one history: faults for a while, then none, and everything must end. */
export async function playSeed(seed: number, parts: Parts): Promise<Played> {
  const simulation = new Simulation(seed, parts);
  return simulation.play();
}

class Simulation {
  readonly #parts: Parts;
  readonly #chance: Chance;
  readonly #clock: InstanceType<Testing['VirtualClock']>;
  readonly #store: TaskStore;
  readonly #history: SimulatedHistory;
  readonly #checks: DeliveryChecks;
  readonly #faults: Faults;
  readonly #workers: { readonly process: SimulatedProcess; readonly runner: Runner }[] = [];
  readonly #client: TaskStore;
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
    this.#clock = new parts.testing.VirtualClock();
    const clock = this.#clock;
    let ids = 0;
    const rules = this.#chance.oneIn(3) ? { maxRunningPerTenant: 1 + this.#chance.below(2) } : {};
    this.#store = parts.tasks.createMemoryStore({
      ...rules,
      world: {
        clock: { now: () => clock.now() + this.#shiftMs, setTimer: (ms, callback) => clock.setTimer(ms, callback) },
        createId: () => `store-${++ids}`,
        random: () => this.#chance.next(),
      },
    });
    this.#history = new SimulatedHistory(this.#store, rules);
    this.#checks = new DeliveryChecks({
      store: this.#store,
      leaseMs: LEASE_MS,
      now: () => clock.now(),
      after: (ms, happen) => void clock.setTimer(ms, happen),
      tenantOf: (id) => this.#history.tenantOf(id),
      violations: this.#history.violations,
    });
    this.#client = this.#connect(new SimulatedProcess('client', clock, this.#chance));
  }

  async play(): Promise<Played> {
    for (let i = 0; i < 2; i++) this.#startWorker();
    this.#planWork();
    this.#planFaults();
    await this.#advance(HOSTILE_MS, this.#isOverFor(REST_MS));
    this.#calmDown();
    await this.#advance(CALM_MS, this.#isOverFor(WAKE_MS));
    await this.#history.look({ all: true });
    await this.#history.journals();
    await this.#checks.settled();
    const { checkHistory } = this.#parts.testing;
    const violations = [...this.#history.violations, ...checkHistory(this.#history.entries)];
    this.#digest.add(`${this.#clock.now()} ${violations.length}`);
    return { violations, digest: this.#digest.text, tasks: this.#history.tasks };
  }

  /** Whether everything has ended that users asked for, and has for a while. */
  #isOverFor(ms: number): () => Promise<boolean> {
    let since = this.#clock.now();
    return async () => {
      const isOver = (await this.#history.look()) && this.#plans === 0;
      if (!isOver) since = this.#clock.now();
      return isOver && this.#clock.now() - since >= ms;
    };
  }

  #connect(process: SimulatedProcess): TaskStore {
    return connect(process, {
      store: this.#store,
      clock: this.#clock,
      chance: this.#chance,
      faults: this.#faults,
      tasks: this.#parts.tasks,
      checks: this.#checks,
      onCommit: (commit) => {
        this.#digest.add(toldShortly(commit, this.#clock.now()));
        if (this.#parts.trace) {
          const { name, args, answer, error } = commit;
          const said = JSON.stringify(answer ?? String(error)) ?? '';
          console.log(`${this.#clock.now() % 1_000_000} ${process.name} ${name} ${JSON.stringify(args)} → ${said}`);
        }
        this.#history.commit(commit);
        this.#checks.committed(commit);
      },
    });
  }

  #startWorker(): void {
    const { core, tasks } = this.#parts;
    const process = new SimulatedProcess(`w${++this.#started}`, this.#clock, this.#chance);
    const agents = createWork({
      core,
      process,
      chance: this.#chance,
      onEffect: (effect) => {
        this.#history.effect(effect);
        this.#checks.effect(effect);
      },
    });
    const runner = tasks.createRunner({
      store: this.#connect(process),
      agents,
      worker: process.name,
      leaseMs: LEASE_MS,
      pollMs: this.#chance.pick(POLLS_MS),
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
    this.#try(() => runner.serve({ concurrency: 1 + this.#chance.below(4) }));
  }

  /** What users do: tasks, conversations, cancels, messages. */
  #planWork(): void {
    const chance = this.#chance;
    const isTalk = chance.oneIn(4);
    const count = 2 + chance.below(5);
    for (let i = 0; i < count; i++) {
      const at = chance.below(isTalk ? TALK_MS : HOSTILE_MS / 2);
      this.#userAt(at, () => this.#createTask(i, isTalk));
    }
  }

  /** `isTalk`: everything is said in one conversation, in a short time. */
  async #createTask(i: number, isTalk: boolean): Promise<void> {
    const chance = this.#chance;
    const conversation = isTalk || chance.oneIn(3) ? 'c1' : undefined;
    const policy = chance.pick(['replace', 'queue', 'steer', 'reject'] as const);
    const concurrency = conversation === undefined && chance.oneIn(4) ? { key: 'k', limit: 1 } : undefined;
    const tenant = isTalk ? TENANTS[0] : chance.pick(TENANTS);
    const task = {
      tenant,
      agent: chance.pick(['assistant', 'assistant', 'brief', 'long', 'broken']),
      input: `task ${i}`,
      key: `task ${i}`,
      conversation,
      concurrency,
      priority: chance.below(3),
      ...(conversation !== undefined && chance.oneIn(4) && { holdMs: 1 + chance.below(2_000) }),
      ...(conversation === undefined && chance.oneIn(5) && { notBefore: this.#clock.now() + chance.below(5_000) }),
    };
    const isCancelled = chance.oneIn(2);
    const cancelIn = chance.below(8_000);
    const nonce = `nonce ${i}`;
    const isRepeated = chance.oneIn(4);
    const again = { policy, nonce: chance.oneIn(2) ? nonce : `${nonce} again` };
    if (chance.oneIn(5)) this.#userAt(chance.below(6_000), () => this.#workOn(task));
    const receipt = await this.#askUntilAnswered(() => this.#client.create(task, { policy, nonce }));
    if (isRepeated)
      this.#userAt(chance.below(10_000), () => this.#askUntilAnswered(() => this.#client.create(task, again)));
    if (receipt?.answer !== 'created') return;
    const ref = { tenant, id: receipt.task.id };
    if (conversation !== undefined && chance.oneIn(6)) {
      this.#userAt(chance.below(10_000), () =>
        this.#askUntilAnswered(() => this.#client.cancel({ tenant, conversation })),
      );
    }
    if (isCancelled) this.#userAt(cancelIn, () => this.#cancel(ref, i));
    if (chance.oneIn(6)) {
      const message = { type: 'steer', message: 'be brief' } as const;
      this.#userAt(chance.below(4_000), () => this.#askUntilAnswered(() => this.#client.send(ref, message, { nonce })));
    }
  }

  /** A worker is asked for one task, by its id, beside those that it takes. */
  async #workOn({ tenant, key }: { readonly tenant: string; readonly key: string }): Promise<void> {
    const { runner } = this.#chance.pick(this.#workers);
    const task = await this.#askUntilAnswered(() => this.#client.find({ tenant, key }));
    const wait = this.#chance.oneIn(2);
    // Not awaited: a worker that dies never answers.
    if (task !== undefined) this.#try(() => runner.work({ tenant, id: task.id }, { wait }));
  }

  async #cancel(ref: { tenant: string; id: string }, i: number): Promise<void> {
    const mode = this.#chance.pick(['graceful', 'now', 'kill'] as const);
    const undo = this.#chance.oneIn(3);
    await this.#askUntilAnswered(() => this.#client.cancel(ref, { by: `user ${i}` }, { mode, undo }));
    if (this.#chance.oneIn(3)) this.#userAt(this.#chance.below(2_000), () => this.#cancel(ref, i + 100));
  }

  #planFaults(): void {
    const chance = this.#chance;
    const count = chance.below(6);
    for (let i = 0; i < count; i++) {
      const at = chance.below(HOSTILE_MS);
      const fault = chance.pick(FAULTS);
      this.#at(at, () => this.#strike(fault));
    }
  }

  #strike(fault: (typeof FAULTS)[number]): void {
    const chance = this.#chance;
    const worker = chance.pick(this.#workers);
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
        this.#faults.cutOff.add(worker.process.name);
        this.#at(forMs, () => this.#faults.cutOff.delete(worker.process.name));
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

  /** Faults stop: whoever lives goes on, and at least one does. */
  #calmDown(): void {
    this.#faults.isCalm = true;
    this.#faults.isDown = false;
    this.#faults.cutOff.clear();
    for (const { process } of this.#workers) process.goOn();
    if (this.#workers.every(({ process }) => process.isDead)) this.#startWorker();
  }

  /** What a user does: a history is not over before it was done. */
  #userAt(ms: number, act: () => Promise<unknown>): void {
    this.#plans++;
    this.#at(ms, () => act().finally(() => this.#plans--));
  }

  #at(ms: number, happen: () => unknown): void {
    this.#clock.setTimer(ms, () => this.#try(() => Promise.resolve(happen())));
  }

  /** What users do may fail: they are users. */
  #try(work: () => Promise<unknown>): void {
    work().catch(() => {});
  }

  async #askUntilAnswered<T>(ask: () => Promise<T>): Promise<T | undefined> {
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
