/**
 * Carries messages between processes, fast. It may lose, double, delay or reorder any of them, so nothing may depend on a
 * message: it only makes a process look sooner.
 */
export interface Bus extends AsyncDisposable {
  /** The address of this process: random, and known only to those who share the store. */
  readonly inbox: string;
  /** Sends a message to a process, immediately. Never throws, and may drop it: after `false` its receiver is told later. */
  send(inbox: string, message: Uint8Array): unknown;
  /** Calls back with the messages for this process. Resolves once it listens, however long the bus is away. */
  receive(listener: (message: Uint8Array) => void): Promise<Disposable>;
  /** Calls back when it listens again: messages sent in the meantime are lost. */
  onGap(listener: () => void): Disposable;
}

/** Larger messages are dropped. */
export const MAX_MESSAGE_BYTES = 1_000_000;

/** The listeners of a bus. One that throws does not affect the others. */
export class Listeners {
  readonly #messages = new Set<(message: Uint8Array) => void>();
  readonly #gaps = new Set<() => void>();

  get isEmpty(): boolean {
    return this.#messages.size === 0;
  }

  add(listener: (message: Uint8Array) => void, onEmpty: () => void = () => {}): Disposable {
    const own = (message: Uint8Array): void => listener(message);
    this.#messages.add(own);
    return {
      [Symbol.dispose]: () => {
        if (this.#messages.delete(own) && this.isEmpty) onEmpty();
      },
    };
  }

  onGap(listener: () => void): Disposable {
    const own = (): void => listener();
    this.#gaps.add(own);
    return { [Symbol.dispose]: () => void this.#gaps.delete(own) };
  }

  deliver(message: Uint8Array): void {
    for (const listener of this.#messages) callSafely(() => listener(message));
  }

  gap(): void {
    for (const listener of this.#gaps) callSafely(listener);
  }
}

function callSafely(call: () => void): void {
  try {
    call();
  } catch (error) {
    process.emitWarning(new Error('A listener of a bus failed', { cause: error }));
  }
}
