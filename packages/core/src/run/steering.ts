import type { UserMessage } from './message.ts';

/** Messages for a run under way. They enter at the next boundary; those that came too late are handed back. */
export class Steering {
  #waiting: UserMessage[] = [];
  #closed = false;

  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  add(message: UserMessage): boolean {
    if (this.#closed) return false;
    this.#waiting.push(message);
    return true;
  }

  take(): readonly UserMessage[] {
    const taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }

  /** Takes no more, and hands back what nobody read. */
  close(): readonly UserMessage[] {
    this.#closed = true;
    return this.take();
  }
}
