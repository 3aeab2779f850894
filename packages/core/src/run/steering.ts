import type { CancellationToken } from '../stop/token/token.ts';
import type { UserMessage } from './history/message.ts';

export interface SteerOptions {
  /** Withdraws the message, unless it has been delivered. */
  readonly token?: CancellationToken | undefined;
}

export interface SteerReceipt {
  readonly answer: 'accepted' | 'too-late';
  /** The message as it was read; `steer-delivered` tells of this one. */
  readonly message: UserMessage;
}

interface Waiting {
  readonly message: UserMessage;
  readonly token: CancellationToken | undefined;
}

/** Messages for a run under way. They enter at the next boundary; those that came too late are handed back. */
export class Steering {
  #waiting: Waiting[] = [];
  #closed = false;

  get hasWaiting(): boolean {
    return this.#waiting.some(isWanted);
  }

  add(message: UserMessage, token?: CancellationToken): boolean {
    if (this.#closed) return false;
    this.#waiting.push({ message, token });
    return true;
  }

  take(): readonly UserMessage[] {
    const taken = this.#waiting.filter(isWanted);
    this.#waiting = [];
    return taken.map(({ message }) => message);
  }

  /** Takes no more, and hands back what nobody read. */
  close(): readonly UserMessage[] {
    this.#closed = true;
    return this.take();
  }
}

function isWanted({ token }: Waiting): boolean {
  return !token?.isCancelled;
}
