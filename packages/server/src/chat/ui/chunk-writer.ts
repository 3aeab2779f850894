import type { Usage } from '@whoa/core';
import type { Clock } from '@whoa/core/embed';
import type { SelfManagedWork } from '@whoa/tasks';
import type { UIMessageChunk } from 'ai';

/** What the application's own loop has streamed, as an event in the journal of its task. */
export interface ReplyEvent {
  readonly type: 'ui-chunks';
  readonly chunks: readonly UIMessageChunk[];
  /** The tokens so far, if any are known. */
  readonly usage?: Usage;
}

/** How often chunks are written: soon enough for readers, without a write for each word. */
const FLUSH_MS = 50;

type Journal = Parameters<SelfManagedWork['runTask']>[0]['journal'];

interface WriterOptions {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly past: readonly UIMessageChunk[];
  readonly usage: () => Usage | undefined;
}

/** Writes the chunks of a reply to the journal of its task in batches, and keeps all of them. */
export class ChunkWriter {
  readonly #options: WriterOptions;
  readonly #all: UIMessageChunk[];
  #waiting: UIMessageChunk[] = [];
  #writing: Promise<void> | undefined;
  #timer: Disposable | undefined;
  #writtenAt = -Infinity;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#all = [...options.past];
  }

  /** All chunks so far, including those of lost workers. */
  get chunks(): readonly UIMessageChunk[] {
    return this.#all;
  }

  add(...chunks: readonly UIMessageChunk[]): void {
    for (const chunk of chunks) {
      append(this.#all, chunk);
      append(this.#waiting, chunk);
    }
    if (this.#waiting.length === 0) return;
    // The first word after a pause is written immediately.
    const { clock } = this.#options;
    const dueMs = Math.max(0, this.#writtenAt + FLUSH_MS - clock.now());
    this.#timer ??= clock.setTimer(dueMs, () => void this.#write());
  }

  /** Resolves when everything is written, or cannot be: then the task is lost and its token is cancelled. */
  async flush(): Promise<void> {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    await this.#write();
  }

  async #write(): Promise<void> {
    this.#timer = undefined;
    while (this.#writing !== undefined) await this.#writing;
    if (this.#waiting.length === 0) return;
    const { journal, clock } = this.#options;
    const usage = this.#options.usage();
    const event: ReplyEvent = { type: 'ui-chunks', chunks: this.#waiting, ...(usage && { usage }) };
    this.#waiting = [];
    this.#writtenAt = clock.now();
    // Ignore the error here: the token is cancelled when a write fails.
    this.#writing = journal(event as unknown as Parameters<Journal>[0]).catch(() => {});
    await this.#writing;
    this.#writing = undefined;
  }
}

/** Adds a chunk to others. Adjacent text is merged, unless a chunk has more than its text. */
function append(chunks: UIMessageChunk[], chunk: UIMessageChunk): void {
  const last = chunks.at(-1);
  const isSame = last && isPlainDelta(last) && isPlainDelta(chunk) && last.type === chunk.type && last.id === chunk.id;
  if (isSame) chunks[chunks.length - 1] = { ...chunk, delta: last.delta + chunk.delta };
  else chunks.push(chunk);
}

function isPlainDelta(
  chunk: UIMessageChunk,
): chunk is Extract<UIMessageChunk, { type: 'text-delta' | 'reasoning-delta' }> {
  return (chunk.type === 'text-delta' || chunk.type === 'reasoning-delta') && Object.keys(chunk).length === 3;
}
