import { systemClock } from '@whoa/core/embed';
import type { Hint } from '../store.ts';
import { type Bus, MAX_MESSAGE_BYTES } from './bus.ts';

/** A process gets its messages once in this time, and the first immediately. */
const PULSE_MS = 20;
const MAX_PER_MESSAGE = 500;
/** Who would get more hints at the same time looks at everything instead. */
const MAX_HINTS = 5_000;
const RESYNC: Hint = { type: 'resync' };

/** Sends hints to other processes: one message for each of them and pulse. */
export class Outbox implements Disposable {
  readonly #bus: Bus;
  readonly #waiting = new Map<string, Hint[]>();
  readonly #onPulse: () => boolean;
  #pulse: Disposable | undefined;
  #isScheduled = false;
  /** Longer than usual, where each message costs much. */
  pulseMs: number | undefined;

  constructor(bus: Bus, { onPulse = () => false }: { readonly onPulse?: () => boolean } = {}) {
    this.#bus = bus;
    this.#onPulse = onPulse;
  }

  add(inbox: string, hint: Hint): void {
    const hints = this.#waiting.get(inbox) ?? [];
    if (hints.length < MAX_HINTS) hints.push(hint);
    else hints.splice(0, MAX_HINTS, RESYNC);
    this.#waiting.set(inbox, hints);
    this.schedule();
  }

  /** Calls back before the next message leaves. Return whether there was something. */
  schedule(): void {
    if (this.#pulse !== undefined || this.#isScheduled) return;
    this.#isScheduled = true;
    // All hints of one step share a message.
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#send();
    });
  }

  /** Sends what waits. */
  [Symbol.dispose](): void {
    this.#pulse?.[Symbol.dispose]();
    this.#send({ isLast: true });
  }

  #send({ isLast = false } = {}): void {
    this.#pulse = undefined;
    this.#isScheduled = true;
    const hasWords = this.#onPulse();
    this.#isScheduled = false;
    if (this.#waiting.size === 0 && !hasWords) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const [inbox, hints] of waiting)
      for (let i = 0; i < hints.length; i += MAX_PER_MESSAGE) {
        const isSent = this.#bus.send(inbox, encodeHints(hints.slice(i, i + MAX_PER_MESSAGE))) !== false;
        // Who lost something looks at everything, as soon as the bus has room.
        if (!isSent) this.#waiting.set(inbox, [RESYNC]);
      }
    const pulseMs = Math.max(PULSE_MS, this.pulseMs ?? 0);
    if (!isLast) this.#pulse = systemClock.setTimer(pulseMs, () => this.#send(), { keepAlive: false });
  }
}

function encodeHints(hints: readonly Hint[]): Uint8Array {
  const message = Buffer.from(JSON.stringify(hints));
  // A bus drops what is larger.
  return message.length > MAX_MESSAGE_BYTES ? encodeHints([RESYNC]) : message;
}

/** Others may be able to send to a bus, so what cannot be parsed is ignored. */
export function decodeHints(message: Uint8Array): readonly Hint[] {
  try {
    const hints = JSON.parse(Buffer.from(message).toString()) as readonly (Partial<Hint> | null)[];
    return hints.filter((hint): hint is Hint => typeof hint?.type === 'string');
  } catch {
    return [];
  }
}
