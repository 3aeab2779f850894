import type { UIMessageChunk } from 'ai';

type Delta = Extract<UIMessageChunk, { type: 'text-delta' | 'reasoning-delta' }>;

/** Thrown when a replay is not what the page shows. Its words are those by which `useChat` knows a lost connection. */
export class ChangedReplyError extends TypeError {
  override readonly name = 'ChangedReplyError';

  constructor() {
    super('network error: the reply has changed');
  }
}

/**
 * What a reader has been given of one message. After a lost connection the message is streamed again from its start:
 * only what is new passes.
 */
export class ShownChunks {
  /** Pieces of one text are one entry. */
  #shown: UIMessageChunk[] = [];
  /** How far the stream has come: an entry, and the number of its characters. */
  #at = 0;
  #characters = 0;

  /** Call it before a stream that begins at the start of the message. */
  restart(): void {
    this.#at = 0;
    this.#characters = 0;
  }

  /** Returns what to pass on for a chunk of the stream. */
  next(chunk: UIMessageChunk): readonly UIMessageChunk[] {
    if (isRepeatable(chunk)) return [chunk];
    let known = this.#shown[this.#at];
    if (known !== undefined && isDelta(known)) {
      if (isDelta(chunk) && chunk.type === known.type && chunk.id === known.id) return this.#continue(known, chunk);
      if (known.delta.length > this.#characters) return this.#startStepAgain(chunk);
      this.#at++;
      this.#characters = 0;
      known = this.#shown[this.#at];
    }
    // Results that were only preliminary are not kept.
    while (known !== undefined && isPreliminary(known) && !isSame(known, chunk)) known = this.#shown[++this.#at];
    if (known === undefined) return this.#add(chunk);
    if (isPreliminary(chunk) && !isSame(known, chunk)) return [];
    if (!isSame(known, chunk)) return this.#startStepAgain(chunk);
    this.#at++;
    return [];
  }

  #add(chunk: UIMessageChunk): readonly UIMessageChunk[] {
    this.#shown.push(chunk);
    if (isDelta(chunk)) this.#characters = chunk.delta.length;
    else this.#at++;
    return [chunk];
  }

  #continue(known: Delta, chunk: Delta): readonly UIMessageChunk[] {
    const rest = known.delta.slice(this.#characters);
    if (rest.startsWith(chunk.delta)) {
      this.#characters += chunk.delta.length;
      return [];
    }
    const isLast = this.#at === this.#shown.length - 1;
    if (!isLast || !chunk.delta.startsWith(rest)) return this.#startStepAgain(chunk);
    const delta = chunk.delta.slice(rest.length);
    this.#shown[this.#at] = { ...known, delta: known.delta + delta };
    this.#characters = known.delta.length + delta.length;
    return [{ ...chunk, delta }];
  }

  /** The last step was repeated, by another worker or a retry: its parts are replaced. Earlier steps never change. */
  #startStepAgain(chunk: UIMessageChunk): readonly UIMessageChunk[] {
    const start = this.#shown.findLastIndex(({ type }) => type === 'start-step');
    if (start < 0 || this.#at <= start) throw new ChangedReplyError();
    const known = this.#shown[this.#at]!;
    const half =
      isDelta(known) && this.#characters > 0 ? [{ ...known, delta: known.delta.slice(0, this.#characters) }] : [];
    const step = [...this.#shown.slice(start + 1, this.#at), ...half];
    this.#shown = [...this.#shown.slice(0, start + 1), ...step];
    this.#at = this.#shown.length;
    this.#characters = 0;
    return [{ type: 'reset-step' }, ...step, ...this.#add(chunk)];
  }
}

function isDelta(chunk: UIMessageChunk): chunk is Delta {
  return chunk.type === 'text-delta' || chunk.type === 'reasoning-delta';
}

function isPreliminary(chunk: UIMessageChunk): boolean {
  return chunk.type === 'tool-output-available' && chunk.preliminary === true;
}

/** Nothing changes if it comes twice. */
function isRepeatable(chunk: UIMessageChunk): boolean {
  return chunk.type === 'message-metadata' || ('transient' in chunk && chunk.transient === true);
}

function isSame(one: UIMessageChunk, other: UIMessageChunk): boolean {
  // Later its metadata has its own chunk.
  if (one.type === 'start' && other.type === 'start') return one.messageId === other.messageId;
  return JSON.stringify(one) === JSON.stringify(other);
}
