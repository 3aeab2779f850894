import { type BoundedEnd, runBounded, type WhenCancelled, type WorkContext } from './bounded.ts';
import { CLEANUP_MS } from './cleanup.ts';
import { CallTimeoutError, CancelledError } from './errors.ts';
import { enterInLedger, type Ledger } from './ledger.ts';
import type { StopLevel } from './level.ts';
import type { CancelReason } from './reason.ts';
import { CancellationToken } from './token.ts';

export interface GuardOptions {
  /** How others will read it in errors and in the ledger. */
  readonly name: string;
  /** `interrupt` unless said otherwise; `finish` needs `timeoutMs`. */
  readonly whenCancelled?: WhenCancelled;
  /** After this it is asked to stop, and abandoned 2 s later (`finish`: at once). */
  readonly timeoutMs?: number;
  readonly cleanupMs?: number;
  /** Where abandoned work and its late result are written down. */
  readonly ledger?: Ledger;
  /** Names it in the ledger, unlike any other there; made up unless given. */
  readonly key?: string;
  /** A cancel has to wait for this `finish` work. */
  readonly onWait?: (level: StopLevel, reason: CancelReason) => void;
  /** Who may cancel it: a token, a signal (which means `now`), or both. */
  readonly token?: CancellationToken;
  readonly signal?: AbortSignal;
}

/**
 * Makes any async function bounded, fenced and reported, also one that knows nothing of cancellation.
 *
 * It resolves and rejects as the function does; when cancelled it rejects with `CancelledError`, at the latest when the
 * ladder ends, and a late result changes nothing.
 *
 * ```ts
 * const page = await guard(({ signal }) => fetch(url, { signal }), { name: 'fetch page', token, timeoutMs: 5_000 });
 * ```
 */
export async function guard<T>(
  execute: (context: WorkContext) => T | PromiseLike<T>,
  options: GuardOptions,
): Promise<T> {
  const { name, whenCancelled = 'interrupt', timeoutMs, cleanupMs = CLEANUP_MS, ledger } = options;
  const token = rootOf(options);
  try {
    return await runBounded<T, T>({
      execute,
      token,
      name,
      whenCancelled,
      timeoutMs,
      cleanupMs,
      nested: false,
      onCleanupError: (error) => process.emitWarning(error),
      ...(options.onWait && { onWait: options.onWait }),
      onEnd(end) {
        if (end.state === 'unknown' && ledger !== undefined) {
          const { key = `guard/${crypto.randomUUID()}` } = options;
          enterInLedger(ledger, { key, name, reason: end.reason, abandonedAt: token.clock.now() }, end);
        }
        return valueFrom(end, options, token);
      },
    });
  } finally {
    token[Symbol.dispose]();
  }
}

/** The guard's own token, so that it can be disposed whatever it was made from. */
function rootOf({ token: parent, signal, name }: GuardOptions): CancellationToken {
  return signal === undefined
    ? new CancellationToken({ parent, name })
    : CancellationToken.from(signal, { parent, name });
}

function valueFrom<T>(end: BoundedEnd<T>, options: GuardOptions, token: CancellationToken): T {
  if (end.state === 'finished') return end.value;
  if (end.state === 'failed') throw end.error;
  const cause = end.state === 'interrupted' ? end.error : undefined;
  const timedOut = !token.isCancelled && options.timeoutMs !== undefined;
  if (timedOut) throw new CallTimeoutError(options.name, options.timeoutMs);
  throw new CancelledError(token.reason ?? end.reason, { partial: { state: end.state }, cause });
}
