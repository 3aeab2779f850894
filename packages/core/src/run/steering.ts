import type { CancellationToken } from '../stop/token/token.ts';
import type { UserMessage } from './history/message.ts';

export interface SteerOptions {
  /** Withdraws the message, unless it has been delivered. */
  readonly token?: CancellationToken | undefined;
}

export interface SteerReceipt {
  readonly result: 'accepted' | 'too-late';
  /** The message as it was read; `steer-delivered` carries the same one. */
  readonly message: UserMessage;
}

interface Waiting {
  readonly message: UserMessage;
  readonly token: CancellationToken | undefined;
}

/** Messages for an active run. The run reads them at the next boundary; unread ones are returned at the end. */
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

  /** Accepts no more messages, and returns the unread ones. */
  close(): readonly UserMessage[] {
    this.#closed = true;
    return this.take();
  }
}

function isWanted({ token }: Waiting): boolean {
  return !token?.isCancelled;
}
