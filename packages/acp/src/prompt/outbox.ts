import type { CallUpdate, Update } from '../updates.ts';

interface Item {
  update: Update;
  /** Awaited before the client may see the update. */
  readonly after: (() => Promise<void>) | undefined;
}

/**
 * Sends updates one at a time, in order. While one is being sent, text, updates of the same call and plans are
 * merged, so a slow client gets fewer and longer updates instead of a growing queue. Once closed it drops everything.
 */
export class Outbox {
  readonly #send: (update: Update) => Promise<void>;
  readonly #waiting: Item[] = [];
  #pumping: Promise<void> | undefined;
  #isClosed = false;
  #late = 0;

  /** `send` never rejects. */
  constructor(send: (update: Update) => Promise<void>) {
    this.#send = send;
  }

  /** How many updates came after the end, and were dropped. */
  get late(): number {
    return this.#late;
  }

  push(update: Update, after?: () => Promise<void>): void {
    if (this.#isClosed) {
      this.#late++;
      return;
    }
    // Merge an update of a call even when others are queued after its last one: many alternating calls must not fill
    // the queue.
    const last =
      update.type === 'call' ? this.#waiting.findLast((item) => isForCall(item.update, update)) : this.#waiting.at(-1);
    const joined = last !== undefined && after === undefined ? join(last.update, update) : undefined;
    if (joined !== undefined) last!.update = joined;
    else this.#waiting.push({ update, after });
    this.#pumping ??= this.#pump();
  }

  /** Resolves when everything pushed so far has been sent. */
  async drained(): Promise<void> {
    await this.#pumping;
  }

  async close(): Promise<void> {
    await this.drained();
    this.#isClosed = true;
  }

  async #pump(): Promise<void> {
    // Updates of the same tick are sent together.
    await Promise.resolve();
    for (let item = this.#waiting.shift(); item !== undefined; item = this.#waiting.shift()) {
      await item.after?.();
      await this.#send(item.update);
    }
    this.#pumping = undefined;
  }
}

function isForCall(update: Update, { callId }: CallUpdate): boolean {
  return update.type === 'call' && update.callId === callId;
}

function join(last: Update, next: Update): Update | undefined {
  if ((last.type === 'text' || last.type === 'thought') && last.type === next.type) {
    return last.messageId === next.messageId ? { ...last, text: last.text + next.text } : undefined;
  }
  if (last.type === 'plan' && next.type === 'plan') return next;
  if (last.type === 'call' && next.type === 'call' && last.callId === next.callId) return joinCalls(last, next);
  return undefined;
}

/** Don't merge a change of status: the client must see that a call ran. */
function joinCalls(last: CallUpdate, next: CallUpdate): CallUpdate | undefined {
  return next.status === undefined || next.status === last.status ? { ...last, ...next } : undefined;
}
