import { warn } from '../warn.ts';
import { rankLevel, type StopLevel } from './level.ts';
import type { CancelReason } from './reason.ts';

/** Called once per level; a listener added late is called at once with the level reached. */
export type CancelListener = (level: StopLevel, reason: CancelReason) => void;

/**
 * Who wants to know of one token's cancel. Linked through each other and not kept in a set: most tokens have one
 * listener or two, and there are very many tokens.
 */
export class CancelListeners {
  /** Called when the last listener has left. */
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

  /** In the order they were added. A listener that is removed meanwhile is not told. */
  tell(level: StopLevel, reason: CancelReason, onError: (error: unknown) => void): void {
    let one = this.#first;
    while (one?.next) one = one.next;
    for (; one !== undefined; one = one.previous) one.tell(level, reason, onError);
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

  tell(level: StopLevel, reason: CancelReason, onError: (error: unknown) => void): void {
    // A listener may raise the level itself and is then ahead of the loop that called it: never tell a lower level after
    // a higher one, nor the same one twice.
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

/** A cancel goes on whatever its listeners do, and whatever is done about them. */
function reportListener(error: unknown, onError: (error: unknown) => void): void {
  try {
    onError(error);
  } catch (worse) {
    warnOfListener(worse);
  }
}

/** What happens to a listener's error when nobody asked for it. */
export function warnOfListener(error: unknown): void {
  warn(new Error('A cancel listener threw; the cancel went on without it', { cause: error }));
}
