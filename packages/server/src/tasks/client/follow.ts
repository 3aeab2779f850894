import type { FollowEvent } from '@whoa/tasks';
import { readEvents } from './events.ts';
import { readError, TaskApiError } from './task-api-error.ts';

const RETRY_DELAY_MS = 250;
const MAX_RETRY_MS = 5_000;
/** The server sends something every 15 s. After this long the connection counts as lost. */
const IDLE_MS = 45_000;
/** Statuses that a retry does not change. */
const FINAL: ReadonlySet<number> = new Set([400, 401, 403, 404, 421]);

const EVENTS: ReadonlySet<string | undefined> = new Set(['entry', 'taken-back', 'end']);

/** Where to start, and when a connection counts as lost. */
export interface FollowTaskOptions {
  /** Start after this: the `cursor` of the last event you have seen, or a position. Defaults to the beginning. */
  readonly after?: number | string | undefined;
  /** Stops following immediately. The task continues. */
  readonly signal?: AbortSignal | undefined;
  /** Called each time the connection is open, also after it was lost. */
  readonly onOpen?: (() => void) | undefined;
  /** Called each time the connection was lost; it is opened again. */
  readonly onDisconnect?: ((error: unknown) => void) | undefined;
  /** A connection that is silent for this long counts as lost. Defaults to 45 s. */
  readonly idleTimeoutMs?: number | undefined;
  /** The pause before reconnecting. Defaults to 250 ms; it doubles each time up to 5 s. */
  readonly retryMs?: number | undefined;
}

/** Opens the stream of events after the one with this id. */
export type OpenEvents = (lastEventId: string, signal: AbortSignal) => Promise<Response>;

/** Follows a task over HTTP until its end, as `followTask` does over a store. */
export function followEvents(
  open: OpenEvents,
  options: FollowTaskOptions,
): AsyncIterableIterator<FollowEvent, undefined> {
  const ending = new AbortController();
  const onAbort = (): void => ending.abort();
  options.signal?.addEventListener('abort', onAbort, { once: true });
  if (options.signal?.aborted) ending.abort();
  const following = follow(open, ending.signal, options);
  const forget = (): void => options.signal?.removeEventListener('abort', onAbort);
  return {
    async next() {
      try {
        const next = await following.next();
        if (next.done) forget();
        return next;
      } catch (error) {
        forget();
        throw error;
      }
    },
    // Needed because a generator's own `return` waits for its pending read.
    return() {
      forget();
      ending.abort();
      return following.return(undefined);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

async function* follow(
  open: OpenEvents,
  signal: AbortSignal,
  options: FollowTaskOptions,
): AsyncGenerator<FollowEvent, undefined> {
  const { onOpen, onDisconnect, idleTimeoutMs = IDLE_MS, retryMs: firstRetryMs = RETRY_DELAY_MS } = options;
  let last = options.after ?? 0;
  let retryMs = firstRetryMs;
  while (!signal.aborted) {
    const connection = new AbortController();
    const close = (): void => connection.abort();
    signal.addEventListener('abort', close, { once: true });
    let idle = setTimeout(close, idleTimeoutMs);
    const onBytes = (): void => {
      clearTimeout(idle);
      idle = setTimeout(close, idleTimeoutMs);
    };
    try {
      const response = await open(`${last}`, connection.signal);
      if (!response.ok) throw await readError(response);
      onOpen?.();
      for await (const { event, data } of readEvents(response.body!, onBytes)) {
        if (signal.aborted) return undefined;
        retryMs = firstRetryMs;
        if (!EVENTS.has(event)) continue;
        const seen = JSON.parse(data) as FollowEvent;
        yield seen;
        if (seen.type === 'end') return undefined;
        last = seen.cursor;
      }
      throw new TypeError('The stream ended before the task; follow it again');
    } catch (error) {
      if (signal.aborted) return undefined;
      if (error instanceof TaskApiError && FINAL.has(error.status)) throw error;
      onDisconnect?.(error);
      if (error instanceof TaskApiError) retryMs = Math.max(retryMs, error.retryAfterMs ?? 0);
    } finally {
      clearTimeout(idle);
      signal.removeEventListener('abort', close);
    }
    await pause(retryMs, signal);
    retryMs = Math.min(2 * retryMs, MAX_RETRY_MS);
  }
  return undefined;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
  });
}
