import type { Clock, World } from '@whoa/core/embed';
import type { VirtualClock } from '@whoa/core/testing';
import type { Chance } from './random.ts';

/** One simulated process: it can be stopped, go on, and die at any await. What happens to it afterwards reaches nobody. */
export class SimulatedProcess {
  readonly name: string;
  readonly world: World;
  #state: 'runs' | 'stopped' | 'dead' = 'runs';
  /** What happened while it was stopped. */
  #missed: (() => void)[] = [];
  readonly #clock: VirtualClock;
  /** How long its machine has slept: its clock does not count that, and its timers wait for longer. */
  #sleptMs = 0;
  #asleepSince: number | undefined;
  #ids = 0;
  #stops = 0;

  constructor(name: string, clock: VirtualClock, chance: Chance) {
    this.name = name;
    this.#clock = clock;
    const own: Clock = {
      now: () => clock.now() - this.#sleptMs - (clock.now() - (this.#asleepSince ?? clock.now())),
      wallNow: () => clock.now(),
      setTimer: (ms, callback) => this.#setTimer(ms, callback),
    };
    this.world = { clock: own, createId: () => `${name}-${++this.#ids}`, random: () => chance.next() };
  }

  get isDead(): boolean {
    return this.#state === 'dead';
  }

  get isStopped(): boolean {
    return this.#state === 'stopped';
  }

  /** How often it was stopped or died. */
  get stops(): number {
    return this.#stops;
  }

  /** Something happens to the process: now, when it goes on, or never. */
  deliver(deferred: () => void): void {
    if (this.#state === 'runs') deferred();
    else if (this.#state === 'stopped') this.#missed.push(deferred);
  }

  stop(): void {
    if (this.#state !== 'runs') return;
    this.#state = 'stopped';
    this.#stops++;
  }

  /** Stops as a machine does that is suspended. */
  sleep(): void {
    if (this.#state !== 'runs') return;
    this.stop();
    this.#asleepSince = this.#clock.now();
  }

  /** What was missed happens at once, or one after the other as the caller says. */
  goOn(happens: (missed: () => void) => void = (missed) => missed()): void {
    if (this.#state !== 'stopped') return;
    this.#state = 'runs';
    this.#sleptMs += this.#clock.now() - (this.#asleepSince ?? this.#clock.now());
    this.#asleepSince = undefined;
    const missed = this.#missed;
    this.#missed = [];
    for (const deferred of missed) happens(() => this.deliver(deferred));
  }

  die(): void {
    this.#state = 'dead';
    this.#stops++;
    this.#missed = [];
  }

  #setTimer(ms: number, callback: () => void): Disposable {
    const own = this.world.clock;
    const dueAt = own.now() + Math.max(0, ms);
    const fire = (): void => {
      const left = dueAt - own.now();
      if (left > 0) timer = this.#clock.setTimer(left, () => this.deliver(fire));
      else callback();
    };
    let timer = this.#clock.setTimer(ms, () => this.deliver(fire));
    return { [Symbol.dispose]: () => timer[Symbol.dispose]() };
  }
}
