import type { CallResult } from '../tool/result.ts';
import type { Effect, Violation } from './history.ts';

type Broken = (promise: Violation['promise'], what: string) => void;

/** What the calls of one run or task really did, compared with what was reported about them. */
export class CallAudit {
  readonly #broken: Broken;
  readonly #reported = new Map<string, CallResult>();
  readonly #done = new Map<string, Set<Effect['phase']>>();
  /** Only tools that report their effects can be checked. */
  readonly #telling = new Set<string>();
  readonly #undone = new Map<string, string>();

  constructor(broken: Broken) {
    this.#broken = broken;
  }

  recordReported(result: CallResult): void {
    this.#reported.set(result.callId, result);
  }

  /** Notes how a report or an event says that an undo ended. */
  toldUndo(callId: string, state: string): void {
    this.#undone.set(callId, state);
  }

  findResult(callId: string): CallResult | undefined {
    return this.#reported.get(callId);
  }

  effect({ callId, tool, phase }: Effect): void {
    this.#telling.add(tool);
    const done = this.#done.get(callId) ?? new Set();
    this.#done.set(callId, done);
    if (phase === 'cut') this.#broken('P9', `${callId} must finish and was cut`);
    if (phase === 'undo-begin') {
      if (done.has(phase)) this.#broken('P9', `the undo of ${callId} began twice`);
      if (!done.has('resolve')) this.#broken('P9', `${callId} was undone though it had not completed`);
    }
    done.add(phase);
  }

  finish(): void {
    for (const result of this.#reported.values()) if (this.#telling.has(result.tool)) this.#compare(result);
    for (const [callId, state] of this.#undone) {
      const done = this.#done.get(callId);
      if (state === 'undone' && done !== undefined && !done.has('undo-resolve'))
        this.#broken('P9', `${callId} is said to be undone, and is not`);
    }
  }

  #compare({ callId, state }: CallResult): void {
    const done = this.#done.get(callId);
    const untrue = (what: string): void => this.#broken('P6', `${callId} is said to be ${state}, but ${what}`);
    if (state === 'not-started') {
      if (done?.has('begin')) untrue('it began');
    } else if (!done?.has('begin')) untrue('it never began');
    else if (state === 'finished' && !done.has('resolve')) untrue('it did not finish');
    else if (state === 'failed' && done.has('resolve')) untrue('it finished');
  }
}
