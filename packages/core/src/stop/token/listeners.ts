import { warn } from '../warn.ts';
import { rankLevel, type StopLevel } from './level.ts';
import type { CancelReason } from './reason.ts';

/** Called once per level. A listener added late is called immediately with the level reached. */
export type CancelListener = (level: StopLevel, reason: CancelReason) => void;

/** The listeners of one token. A linked list: there are very many tokens, and most have one or two listeners. */
export class CancelListeners {
  /** Called when the last listener is removed. */
  onEmpty: (() => void) | undefined;
  #first: Subscription | undefined;

  get isEmpty(): boolean {
    return this.#first === undefined;
  }

  get size(): number {
    let size = 0;
    for (let one = this.#first; one !== undefined; one = one.next) size++;
    return size;
  }

  add(call: CancelListener): Subscription {
    const added = new Subscription(this, call);
    added.next = this.#first;
    if (this.#first) this.#first.previous = added;
    this.#first = added;
    return added;
  }

  remove(subscription: Subscription): void {
    const { next, previous } = subscription;
    if (previous) previous.next = next;
    else if (this.#first === subscription) this.#first = next;
    if (next) next.previous = previous;
    if (this.isEmpty) this.onEmpty?.();
  }

  /** Calls listeners in the order they were added. A listener that is removed meanwhile is not called. */
  notify(level: StopLevel, reason: CancelReason, onError: (error: unknown) => void): void {
    let one = this.#first;
    while (one?.next) one = one.next;
    for (; one !== undefined; one = one.previous) one.notify(level, reason, onError);
  }

  clear(): void {
    for (let one = this.#first; one !== undefined; one = one.next) one.isActive = false;
    this.#first = undefined;
  }
}

/** One listener. Dispose it to stop listening. */
export class Subscription implements Disposable {
  next: Subscription | undefined;
  previous: Subscription | undefined;
  isActive = true;
  readonly #owner: CancelListeners;
  readonly #call: CancelListener;
  #rank = 0;

  constructor(owner: CancelListeners, call: CancelListener) {
    this.#owner = owner;
    this.#call = call;
  }

  notify(level: StopLevel, reason: CancelReason, onError: (error: unknown) => void): void {
    // A listener may raise the level itself and is then ahead of the loop that called it: never report a lower level
    // after a higher one, nor the same one twice.
    const rank = rankLevel(level);
    if (!this.isActive || this.#rank >= rank) return;
    this.#rank = rank;
    try {
      this.#call(level, reason);
    } catch (error) {
      reportListener(error, onError);
    }
  }

  [Symbol.dispose](): void {
    if (!this.isActive) return;
    this.isActive = false;
    this.#owner.remove(this);
  }
}

/** A cancel continues whatever its listeners do, and even if `onError` throws. */
function reportListener(error: unknown, onError: (error: unknown) => void): void {
  try {
    onError(error);
  } catch (worse) {
    warnOfListener(worse);
  }
}

/** The default handler for a listener's error. */
export function warnOfListener(error: unknown): void {
  warn(new Error('A cancel listener threw; the cancel continued without it', { cause: error }));
}
