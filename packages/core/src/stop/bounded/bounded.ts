import type { Clock } from '../clock.ts';
import { waitForLoop } from '../event-loop.ts';
import { SettingsError } from '../settings.ts';
import type { StopLevel } from '../token/level.ts';
import type { CancelReason } from '../token/reason.ts';
import { shield, shieldMs } from '../token/shield.ts';
import { CancellationToken } from '../token/token.ts';
import { type Cleanup, type CleanupError, Cleanups } from './cleanup.ts';
import type { LateResult } from './late-results.ts';

/** The context passed to work under a token. */
export interface WorkContext {
  /** Fires at `abort`. Pass it to `fetch`, timers, child processes. */
  readonly signal: AbortSignal;
  readonly token: CancellationToken;
  /** Registers a cleanup. It runs when the work ends, however it ends. */
  readonly defer: (cleanup: Cleanup) => void;
}

/** How work reacts to a cancel: it can be interrupted, or it must finish. */
export type WhenCancelled = 'interrupt' | 'finish';

/** A piece of work, its limits, and how its end becomes a result. */
export interface BoundedWork<T, Meaning> {
  execute(context: WorkContext): T | PromiseLike<T>;
  readonly token: CancellationToken;
  readonly name: string;
  /** Defaults to `interrupt`. */
  readonly whenCancelled?: WhenCancelled | undefined;
  /** Required for `finish` work. */
  readonly timeoutMs?: number | undefined;
  readonly graceMs?: number | undefined;
  readonly cleanupTimeoutMs: number;
  /** Ordinary work ignores a drain. Nested work receives every level. */
  readonly nested?: boolean;
  /** Work inside this one that limits itself: this work is not abandoned before that has settled. */
  inner?(): PromiseLike<unknown> | undefined;
  /** Called with the work's own token before it starts. */
  onStart?(own: CancellationToken): void;
  /** Called when a cancel has to wait for this `finish` work. */
  onWait?(level: StopLevel, reason: CancelReason): void;
  /** `running` is a cleanup that did not end in time and is still running. */
  onCleanupError(error: CleanupError, running?: Promise<unknown>): void;
  /** Called once, when the wait is over. `runBounded` returns or throws what this does. */
  onEnd(end: BoundedResult<T>): Meaning;
}

/** How one piece of work ended. */
export type BoundedResult<T> =
  | { readonly state: 'finished'; readonly value: T }
  | { readonly state: 'failed'; readonly error: unknown }
  | { readonly state: 'interrupted'; readonly error: unknown; readonly reason: CancelReason }
  /** `late` settles if the abandoned work ends after all; it never rejects. */
  | { readonly state: 'unknown'; readonly reason: CancelReason; readonly late: Promise<LateResult> }
  | { readonly state: 'not-started'; readonly reason: CancelReason }
  /** It could not start: it has no valid time limit. */
  | { readonly state: 'refused'; readonly error: unknown };

/**
 * Runs work so that the wait for it always ends: when the work does, or at `kill`. Then it runs the cleanups, with a
 * time limit, and checks once more. Work that is still pending is abandoned: its end is `unknown`, and a late result
 * changes nothing.
 */
export async function runBounded<T, Meaning>(work: BoundedWork<T, Meaning>): Promise<Awaited<Meaning>> {
  const { token } = work;
  if (token.isCancelled) return work.onEnd({ state: 'not-started', reason: token.reason! }) as Awaited<Meaning>;
  let own: CancellationToken;
  try {
    own = createOwnToken(work);
  } catch (error) {
    return work.onEnd({ state: 'refused', error }) as Awaited<Meaning>;
  }
  const cleanups = new Cleanups(work);
  const warning = warnWhenCancelMustWait(work);
  let truth: BoundedResult<T>;
  try {
    work.onStart?.(own);
    // A listener for the start may have cancelled the work, at any level. An ordinary call's own token ignores a drain.
    const stop = own.reason ?? token.reason;
    if (stop !== undefined) truth = { state: 'not-started', reason: stop };
    else {
      const running = start(work, new Context(own, cleanups.defer));
      truth = await waitForBoundedResult(running, own, work);
      if (cleanups.close()) await cleanups.run(own, work.cleanupTimeoutMs);
      if (truth.state === 'unknown') truth = await endInThisLoop(running, own, truth);
    }
  } finally {
    warning?.[Symbol.dispose]();
    own[Symbol.dispose]();
  }
  // Call this after disposing the work's token: a listener for the end may cancel, and that no longer concerns this
  // work.
  return work.onEnd(truth) as Awaited<Meaning>;
}

/** Checks that work that Whoa always waits for has a time limit. */
export function checkFinishBound(work: Pick<Bound, 'name' | 'whenCancelled' | 'timeoutMs' | 'graceMs'>): void {
  if (work.whenCancelled !== 'finish') return;
  if (work.graceMs !== undefined)
    throw new SettingsError('graceMs', `'${work.name}' finishes when cancelled, and is abandoned at timeoutMs`);
  if (work.timeoutMs === undefined) {
    throw new SettingsError('timeoutMs', `'${work.name}' finishes when cancelled, so it needs a timeoutMs`);
  }
  shieldMs(work.timeoutMs, 'timeoutMs');
}

type Bound = Omit<BoundedWork<unknown, unknown>, 'execute' | 'onEnd'>;

function createOwnToken(work: Bound): CancellationToken {
  const { token, name, timeoutMs, graceMs } = work;
  if (work.whenCancelled === 'finish') return shield(token, { timeoutMs: timeoutMs!, name });
  const own = new CancellationToken({ parent: token, name, inheritFrom: work.nested ? 'drain' : 'abort' });
  if (timeoutMs !== undefined) {
    const reason = { kind: 'deadline', message: `${name} took longer than ${timeoutMs} ms` } as const;
    own.cancelAfter(timeoutMs, reason, { mode: graceMs === undefined ? 'now' : { abortMs: graceMs } });
  }
  return own;
}

function warnWhenCancelMustWait(work: Bound): Disposable | undefined {
  if (work.whenCancelled !== 'finish') return undefined;
  let warned = false;
  return work.token.onCancel((level, reason) => {
    if (!warned) work.onWait?.(level, reason);
    warned = true;
  });
}

class Context implements WorkContext {
  readonly token: CancellationToken;
  readonly defer: (cleanup: Cleanup) => void;
  declare readonly signal: AbortSignal;

  constructor(token: CancellationToken, defer: (cleanup: Cleanup) => void) {
    this.token = token;
    this.defer = defer;
    Object.defineProperty(this, 'signal', SIGNAL);
  }
}

/**
 * Created on first use: work that never reads it needs no AbortController. Keep it an own property of the context, not
 * one of the class: a tool wrapper that copies the context then copies the signal too.
 */
const SIGNAL: PropertyDescriptor & ThisType<WorkContext> = {
  get() {
    return this.token.signal;
  },
  enumerable: true,
  configurable: true,
};

function start<T>(work: Pick<BoundedWork<T, unknown>, 'execute'>, context: WorkContext): Promise<T> {
  try {
    return Promise.resolve(work.execute(context));
  } catch (error) {
    return Promise.reject(error as Error);
  }
}

/**
 * Resolves with how the work ended, at `kill` at the latest. Whether it failed or was interrupted is decided when it
 * ends: a later cancel, during its cleanup, does not change that.
 */
function waitForBoundedResult<T>(
  running: Promise<T>,
  own: CancellationToken,
  work: Pick<BoundedWork<T, unknown>, 'inner'>,
): Promise<BoundedResult<T>> {
  return new Promise((resolve) => {
    running.then(
      (value) => resolve({ state: 'finished', value }),
      (error: unknown) => resolve(toFailure(error, own)),
    );
    // Removed with the token, which is disposed after the work and its cleanup.
    own.onCancel((level) => {
      if (level !== 'kill') return;
      const abandon = (): void =>
        resolve({ state: 'unknown', reason: own.reason!, late: findLateEnd(running, own.clock) });
      const inner = work.inner?.();
      if (inner === undefined) abandon();
      else inner.then(abandon, abandon);
    });
  });
}

function toFailure(error: unknown, own: CancellationToken): BoundedResult<never> {
  const { reason } = own;
  return reason === undefined ? { state: 'failed', error } : { state: 'interrupted', error, reason };
}

/**
 * Returns the end of killed work that settles before the event loop turns, so that its end is known after all. Most
 * work does: it settles as soon as its signal fires.
 */
async function endInThisLoop<T>(
  running: Promise<T>,
  own: CancellationToken,
  otherwise: BoundedResult<T>,
): Promise<BoundedResult<T>> {
  let end = otherwise;
  running.then(
    (value) => (end = { state: 'finished', value }),
    (error: unknown) => (end = toFailure(error, own)),
  );
  await waitForLoop();
  return end;
}

/** Follows abandoned work. Never rejects. */
export async function findLateEnd(work: PromiseLike<unknown>, clock: Pick<Clock, 'now'>): Promise<LateResult> {
  try {
    const value = await work;
    return { at: clock.now(), state: 'finished', value };
  } catch (error) {
    return { at: clock.now(), state: 'failed', error };
  }
}
