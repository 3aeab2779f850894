import { LoopYielder } from '../../stop/loop-yielder.ts';
import type { CancellationToken } from '../../stop/token/token.ts';
import { waitUntilLevel } from '../../stop/wait.ts';
import { type Model, ModelError, type ModelPart, type ModelRequest } from './model.ts';

/** How long the stream of a complete reply may take to close. */
const CLOSING_MS = 1_000;

/** One open stream of a model. It is closed immediately when it is no longer wanted, whatever it does. */
export class ModelStream {
  readonly #token: CancellationToken;
  /** The stream's own token: its signal ends with the stream, however that ends. */
  readonly #wire: CancellationToken;
  readonly #yielder: LoopYielder;
  readonly #iterator: AsyncIterator<ModelPart>;
  #idleTimeoutMs: number;
  #readAt: number;
  #idleTimer: Disposable;
  /** The part that is being awaited. */
  #pending: PromiseLike<unknown> | undefined;
  #isOpen = true;

  constructor(
    model: Model,
    request: ModelRequest,
    { token, idleTimeoutMs }: { token: CancellationToken; idleTimeoutMs: number },
  ) {
    this.#token = token;
    this.#wire = token.child('stream');
    this.#yielder = new LoopYielder(token.clock);
    this.#idleTimeoutMs = idleTimeoutMs;
    this.#readAt = token.clock.now();
    try {
      this.#iterator = model.stream(request, { signal: this.#wire.signal })[Symbol.asyncIterator]();
    } catch (error) {
      this.#wire[Symbol.dispose]();
      throw error;
    }
    this.#idleTimer = this.#watchIdle(idleTimeoutMs);
  }

  /** Returns the next part; `undefined` at the end or if it is no longer wanted. Throws if it failed or timed out. */
  async next(): Promise<ModelPart | undefined> {
    const pause = this.#yielder.yieldIfDue();
    if (pause !== undefined) await waitUntilLevel(pause, this.#token, 'drain');
    if (this.#token.isCancelled) return undefined;
    this.#readAt = this.#token.clock.now();
    const part = this.#iterator.next();
    this.#pending = part;
    const end = await waitUntilLevel(part, this.#wire, 'drain');
    if (end.by !== 'level') this.#pending = undefined;
    if (end.by === 'error' || (end.by === 'value' && end.value.done)) this.#isOpen = false;
    if (this.#token.isCancelled) return undefined;
    if (end.by === 'level') {
      throw new ModelError(`The model sent nothing for ${this.#idleTimeoutMs} ms`, { isRetryable: true });
    }
    if (end.by === 'error') throw end.error;
    return end.value.done ? undefined : end.value.value;
  }

  /** The reply is complete: wait less for the end of the stream than for a part. */
  expectEnd(): void {
    this.#idleTimeoutMs = Math.min(this.#idleTimeoutMs, CLOSING_MS);
    this.#idleTimer[Symbol.dispose]();
    this.#idleTimer = this.#watchIdle(this.#idleTimeoutMs);
  }

  /** Closes stream and connection. Returns a promise of its real end, if it has not ended yet. */
  close(): Promise<unknown> | undefined {
    this.#idleTimer[Symbol.dispose]();
    this.#yielder[Symbol.dispose]();
    this.#wire.cancel({ kind: 'parent', message: 'the reply is over' }, { mode: 'kill' });
    this.#wire[Symbol.dispose]();
    // Don't wait here: a generator that is stuck in a read does not return.
    return this.#isOpen ? Promise.allSettled([this.#pending, this.#returned()]) : undefined;
  }

  async #returned(): Promise<void> {
    await this.#iterator.return?.();
  }

  /** One timer that follows the reads: a stream has thousands of parts. */
  #watchIdle(ms: number): Disposable {
    const { clock } = this.#token;
    return clock.setTimer(ms, () => {
      const leftMs = this.#readAt + this.#idleTimeoutMs - clock.now();
      if (leftMs > 0) this.#idleTimer = this.#watchIdle(leftMs);
      else this.#wire.cancel({ kind: 'deadline' }, { mode: 'kill' });
    });
  }
}
