import type { Clock } from '../stop/clock.ts';
import { EventLog } from './report/event-log.ts';
import { AFTER_THE_END, type RunEvent, type UnstampedEvent } from './report/events.ts';
import { StopReporter } from './report/reporter.ts';

export interface GateOptions {
  readonly runId: string;
  readonly clock: Clock;
  readonly emitToHooks: (event: RunEvent) => void;
}

/** Stamps all events of a run and delivers them in order. After the end only late ones follow, to hooks alone. */
export class RunGate {
  readonly log: EventLog = new EventLog();
  readonly #reporter = new StopReporter();
  readonly #options: GateOptions;
  readonly #waiting: RunEvent[] = [];
  #isNotifying = false;
  #isEnding = false;
  #isOver = false;
  #text = '';
  #turns = 0;
  #lastAt: number;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#lastAt = options.clock.now();
  }

  /** The text of the reply so far. */
  get text(): string {
    return this.#text;
  }

  /** How many turns have started. */
  get turns(): number {
    return this.#turns;
  }

  /** Whether a hook is being called right now. */
  get isNotifying(): boolean {
    return this.#isNotifying;
  }

  get reporter(): Pick<StopReporter, 'finish'> {
    return this.#reporter;
  }

  /** Returns the time, or the last known time if the clock throws: a run must end even then. */
  now(): number {
    try {
      this.#lastAt = this.#options.clock.now();
    } catch {
      // The code that read the clock for the run has already failed with this error.
    }
    return this.#lastAt;
  }

  /** Events caused by a hook are emitted after every listener has received the event that caused them. */
  emit(happened: UnstampedEvent): void {
    // While hooks receive the end, nothing more happens: what they do is too late, and its receipt reports it.
    if (this.#isEnding) return;
    this.#waiting.push(this.stamp(happened));
    if (this.#isNotifying) return;
    this.#isNotifying = true;
    for (let event = this.#waiting.shift(); event !== undefined; event = this.#waiting.shift()) this.#deliver(event);
    this.#isNotifying = false;
  }

  stamp(event: UnstampedEvent): RunEvent {
    const at = 'at' in event && typeof event.at === 'number' ? event.at : this.now();
    return { ...event, runId: this.#options.runId, at } as RunEvent;
  }

  #deliver(event: RunEvent): void {
    if (this.#isOver && !AFTER_THE_END.has(event.type)) return;
    if (!this.#isOver) {
      if (event.type === 'turn-start') {
        this.#text = '';
        this.#turns = event.turn;
      }
      if (event.type === 'text') this.#text += event.text;
      this.#reporter.observe(event);
      this.log.push(event);
    }
    if (event.type === 'run-end') {
      this.#isOver = this.#isEnding = true;
      this.log.close();
    }
    this.#options.emitToHooks(event);
    this.#isEnding = false;
  }
}
