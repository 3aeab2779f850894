import type { IncomingHttpHeaders } from 'node:http';
import type { ProviderRefusal } from './strict/strict.ts';
import type { WireFormat } from './wire/wire.ts';

/** One request as the provider saw it, and the state of its answer. */
export interface LoopbackRequest {
  /** Counts from 0. */
  readonly index: number;
  readonly format: WireFormat;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
  /** Why it was refused, if its history was. */
  readonly refusal: ProviderRefusal | undefined;
  /** How much of the answer has been sent: bytes, events, and the characters of the reply in them. */
  readonly sent: { readonly bytes: number; readonly frames: number; readonly characters: number };
  /** The text of the reply that has been sent. */
  readonly words: string;
  /** When it arrived and when its answer ended, by `performance.now()`. */
  readonly at: number;
  readonly closedAt: number | undefined;
  /** Which side ended it: the server, when it had sent everything or by a fault, or the client by disconnecting. */
  readonly closedBy: 'server' | 'client' | undefined;
  /** Resolves when the answer has reached a stall. */
  waitForStall(): Promise<void>;
  /** Resolves when the answer has ended in any way. */
  waitForClose(): Promise<'server' | 'client'>;
  /** Resolves when this many characters of the reply have been sent. */
  waitForCharacters(count: number): Promise<void>;
}

type Seen = Pick<LoopbackRequest, 'index' | 'format' | 'headers' | 'body' | 'refusal'>;

/** Records what happens to one request. */
export class RequestRecord implements LoopbackRequest {
  readonly index: number;
  readonly format: WireFormat;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
  readonly refusal: ProviderRefusal | undefined;
  readonly sent: { bytes: number; frames: number; characters: number } = { bytes: 0, frames: 0, characters: 0 };
  readonly at: number = performance.now();
  words = '';
  closedAt: number | undefined;
  closedBy: 'server' | 'client' | undefined;
  readonly #stalled = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<'server' | 'client'>();
  readonly #watchers = new Set<{ count: number; resolve: () => void }>();

  constructor(seen: Seen) {
    this.index = seen.index;
    this.format = seen.format;
    this.headers = seen.headers;
    this.body = seen.body;
    this.refusal = seen.refusal;
  }

  stall(): void {
    this.#stalled.resolve();
  }

  send(bytes: number): void {
    this.sent.bytes += bytes;
  }

  sendFrame(words: string): void {
    this.sent.frames++;
    this.words += words;
    this.sent.characters = this.words.length;
    for (const watcher of this.#watchers) {
      if (this.words.length < watcher.count) continue;
      this.#watchers.delete(watcher);
      watcher.resolve();
    }
  }

  close(by: 'server' | 'client'): void {
    if (this.closedBy !== undefined) return;
    this.closedAt = performance.now();
    this.closedBy = by;
    this.#closed.resolve(by);
  }

  waitForStall(): Promise<void> {
    return this.#stalled.promise;
  }

  waitForClose(): Promise<'server' | 'client'> {
    return this.#closed.promise;
  }

  waitForCharacters(count: number): Promise<void> {
    if (this.words.length >= count) return Promise.resolve();
    return new Promise((resolve) => this.#watchers.add({ count, resolve }));
  }
}
