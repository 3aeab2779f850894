import type { Clock } from '../stop/clock.ts';
import { EventLog } from './report/event-log.ts';
import { AFTER_THE_END, type RunEvent, type UnstampedEvent } from './report/events.ts';
import { StopReporter } from './report/reporter.ts';

export interface GateOptions {
  readonly runId: string;
  readonly clock: Clock;
  readonly tellHooks: (event: RunEvent) => void;
}

/**
 * What everything a run tells goes through: stamped, in one order for everybody, and nothing after the end but late things,
 * which only hooks hear of.
 */
export class RunGate {
  readonly log: EventLog = new EventLog();
  readonly #reporter = new StopReporter();
  readonly #options: GateOptions;
  readonly #waiting: RunEvent[] = [];
  #isTelling = false;
  #isEnding = false;
  #isOver = false;
  #text = '';
  #lastAt: number;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#lastAt = options.clock.now();
  }

  /** The words of the reply so far. */
  get text(): string {
    return this.#text;
  }

  /** Whether a hook is being told of something just now. */
  get isTelling(): boolean {
    return this.#isTelling;
  }

  get reporter(): Pick<StopReporter, 'finish'> {
    return this.#reporter;
  }

  /** The time, or the last one known where the clock fails: a run ends even so. */
  now(): number {
    try {
      this.#lastAt = this.#options.clock.now();
    } catch {
      // Whoever asked for the time on the run's behalf has failed with it already.
    }
    return this.#lastAt;
  }

  /** What a hook causes is told when everybody has heard what caused it. */
  tell(happened: UnstampedEvent): void {
    // While hooks are told of the end, nothing more happens: what they do is too late, and its receipt says so.
    if (this.#isEnding) return;
    this.#waiting.push(this.stamp(happened));
    if (this.#isTelling) return;
    this.#isTelling = true;
    for (let event = this.#waiting.shift(); event !== undefined; event = this.#waiting.shift()) this.#deliver(event);
    this.#isTelling = false;
  }

  stamp(event: UnstampedEvent): RunEvent {
    const at = 'at' in event && typeof event.at === 'number' ? event.at : this.now();
    return { ...event, runId: this.#options.runId, at } as RunEvent;
  }

  #deliver(event: RunEvent): void {
    if (this.#isOver && !AFTER_THE_END.has(event.type)) return;
    if (!this.#isOver) {
      if (event.type === 'turn-start') this.#text = '';
      if (event.type === 'text') this.#text += event.text;
      this.#reporter.observe(event);
      this.log.push(event);
    }
    if (event.type === 'run-end') {
      this.#isOver = this.#isEnding = true;
      this.log.close();
    }
    this.#options.tellHooks(event);
    this.#isEnding = false;
  }
}
