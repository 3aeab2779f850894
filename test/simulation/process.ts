import type { Clock, World } from '@whoa/core/embed';
import type { VirtualClock } from '@whoa/core/testing';
import type { Random } from './random.ts';

/**
 * One simulated process: it can be suspended, resume, and die at any await. Nothing that happens to it afterwards has
 * an effect.
 */
export class SimulatedProcess {
  readonly name: string;
  readonly world: World;
  #state: 'runs' | 'stopped' | 'dead' = 'runs';
  /** Events that arrived while it was suspended. */
  #missed: (() => void)[] = [];
  readonly #clock: VirtualClock;
  /** How long its machine has slept: its clock does not count that, and its timers wait longer. */
  #sleptMs = 0;
  #asleepSince: number | undefined;
  #ids = 0;
  #stops = 0;

  constructor(name: string, clock: VirtualClock, random: Random) {
    this.name = name;
    this.#clock = clock;
    const own: Clock = {
      now: () => clock.now() - this.#sleptMs - (clock.now() - (this.#asleepSince ?? clock.now())),
      wallNow: () => clock.now(),
      setTimer: (ms, callback) => this.#setTimer(ms, callback),
    };
    this.world = { clock: own, createId: () => `${name}-${++this.#ids}`, random: () => random.next() };
  }

  get isDead(): boolean {
    return this.#state === 'dead';
  }

  get isStopped(): boolean {
    return this.#state === 'stopped';
  }

  /** How often it was suspended or died. */
  get stops(): number {
    return this.#stops;
  }

  /** Delivers an event to the process: now, when it resumes, or never. */
  deliver(event: () => void): void {
    if (this.#state === 'runs') event();
    else if (this.#state === 'stopped') this.#missed.push(event);
  }

  stop(): void {
    if (this.#state !== 'runs') return;
    this.#state = 'stopped';
    this.#stops++;
  }

  /** Suspends it together with its machine. */
  sleep(): void {
    if (this.#state !== 'runs') return;
    this.stop();
    this.#asleepSince = this.#clock.now();
  }

  /** Runs what was missed immediately, or one at a time as the caller decides. */
  goOn(happens: (missed: () => void) => void = (missed) => missed()): void {
    if (this.#state !== 'stopped') return;
    this.#state = 'runs';
    this.#sleptMs += this.#clock.now() - (this.#asleepSince ?? this.#clock.now());
    this.#asleepSince = undefined;
    const missed = this.#missed;
    this.#missed = [];
    for (const event of missed) happens(() => this.deliver(event));
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
