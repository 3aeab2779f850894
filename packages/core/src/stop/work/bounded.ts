import type { Clock } from '../clock.ts';
import { SettingsError } from '../settings.ts';
import type { StopLevel } from '../token/level.ts';
import type { CancelReason } from '../token/reason.ts';
import { shield, shieldMs } from '../token/shield.ts';
import { CancellationToken } from '../token/token.ts';
import { type Cleanup, type CleanupError, Cleanups } from './cleanup.ts';
import type { LateEnd } from './ledger.ts';

/** What work under a token is given. */
export interface WorkContext {
  /** Fires at `abort`. Hand it to `fetch`, timers, child processes. */
  readonly signal: AbortSignal;
  readonly token: CancellationToken;
  /** Registers a cleanup: it runs when the work ends, however it ends. */
  readonly defer: (cleanup: Cleanup) => void;
}

/** What work can bear: to be interrupted, or only to finish. */
export type WhenCancelled = 'interrupt' | 'finish';

/** Work, what holds for it, and what its end means to whoever wanted it. */
export interface BoundedWork<T, Meaning> {
  execute(context: WorkContext): T | PromiseLike<T>;
  readonly token: CancellationToken;
  readonly name: string;
  /** Defaults to `interrupt`. */
  readonly whenCancelled?: WhenCancelled | undefined;
  /** `finish` work needs one. */
  readonly timeoutMs?: number | undefined;
  readonly cleanupMs: number;
  /** Ordinary work sits a drain out. Nested work hears every level. */
  readonly nested?: boolean;
  /** What bounds itself inside this work: it is not abandoned before that has settled. */
  inner?(): PromiseLike<unknown> | undefined;
  /** Called with the work's own token before it starts. */
  onStart?(own: CancellationToken): void;
  /** A cancel has to wait for this `finish` work. */
  onWait?(level: StopLevel, reason: CancelReason): void;
  /** `running` is a cleanup that did not end in time, and goes on. */
  onCleanupError(error: CleanupError, running?: Promise<unknown>): void;
  /** Called once, when the wait for it is over. What this returns or throws is the answer. */
  onEnd(end: BoundedEnd<T>): Meaning;
}

/** The truth about one piece of work, exactly one of these. */
export type BoundedEnd<T> =
  | { readonly state: 'finished'; readonly value: T }
  | { readonly state: 'failed'; readonly error: unknown }
  | { readonly state: 'interrupted'; readonly error: unknown; readonly reason: CancelReason }
  /** `late` settles if the abandoned work comes back after all; it never rejects. */
  | { readonly state: 'unknown'; readonly reason: CancelReason; readonly late: Promise<LateEnd> }
  | { readonly state: 'not-started'; readonly reason: CancelReason }
  /** It could not begin: it has no bound that holds. */
  | { readonly state: 'refused'; readonly error: unknown };

/**
 * Runs work so that the wait for it always ends: when it does, or at `kill`. Then it cleans up, bounded, and looks once
 * more. What is still pending is abandoned: its end is `unknown`, and a late result can change nothing.
 */
export async function runBounded<T, Meaning>(work: BoundedWork<T, Meaning>): Promise<Meaning> {
  const { token } = work;
  if (token.isCancelled) return work.onEnd({ state: 'not-started', reason: token.reason! });
  let own: CancellationToken;
  try {
    own = createOwnToken(work);
  } catch (error) {
    return work.onEnd({ state: 'refused', error });
  }
  const cleanups = new Cleanups(work);
  const warning = warnWhenCancelMustWait(work);
  let truth: BoundedEnd<T>;
  try {
    work.onStart?.(own);
    const stop = stopBeforeStart(token, own);
    if (stop !== undefined) truth = { state: 'not-started', reason: stop };
    else {
      const running = start(work, new Context(own, cleanups.defer));
      truth = await endUnder(running, own, work);
      if (cleanups.close()) await cleanups.run(own, work.cleanupMs);
      if (truth.state === 'unknown') truth = await lastWords(running, own, truth);
    }
  } finally {
    warning?.[Symbol.dispose]();
    own[Symbol.dispose]();
  }
  // After its token has ended: whoever hears of the end may cancel, and that no longer concerns this work.
  return work.onEnd(truth);
}

/** Work that is waited for, whatever happens, needs a bound. */
export function checkFinishBound(work: {
  readonly name: string;
  readonly whenCancelled?: WhenCancelled;
  readonly timeoutMs?: number;
}): void {
  if (work.whenCancelled !== 'finish') return;
  if (work.timeoutMs === undefined) {
    throw new SettingsError('timeoutMs', `'${work.name}' finishes when cancelled, so it needs a bound`);
  }
  shieldMs(work.timeoutMs, 'timeoutMs');
}

/** Whoever heard of the start may have cancelled it. Work that was announced sits a drain out like any other. */
function stopBeforeStart(token: CancellationToken, own: CancellationToken): CancelReason | undefined {
  return own.reason ?? (token.level === 'drain' ? undefined : token.reason);
}

type Bound = Omit<BoundedWork<unknown, unknown>, 'execute' | 'onEnd'>;

function createOwnToken(work: Bound): CancellationToken {
  const { token, name, timeoutMs } = work;
  if (work.whenCancelled === 'finish') return shield(token, { boundMs: timeoutMs!, name });
  const own = new CancellationToken({ parent: token, name, inheritFrom: work.nested ? 'drain' : 'abort' });
  if (timeoutMs !== undefined) {
    own.cancelAfter(
      timeoutMs,
      { kind: 'deadline', message: `${name} took longer than ${timeoutMs} ms` },
      { mode: 'now' },
    );
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
 * Made when it is asked for: work that never asks costs no AbortController. The context's own property and not one of its
 * class, so that whoever wraps a tool and hands on a copy of the context hands on the signal too.
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
 * How work ended, at `kill` at the latest. Whether it failed or was interrupted is decided in the moment it ends: a cancel
 * that comes later, during its cleanup, changes nothing about that.
 */
function endUnder<T>(
  running: Promise<T>,
  own: CancellationToken,
  work: Pick<BoundedWork<T, unknown>, 'inner'>,
): Promise<BoundedEnd<T>> {
  return new Promise((resolve) => {
    running.then(
      (value) => resolve({ state: 'finished', value }),
      (error: unknown) => resolve(failureOf(error, own)),
    );
    // It leaves with the token, which lives no longer than the work and its cleanup.
    own.onCancel((level) => {
      if (level !== 'kill') return;
      const abandon = (): void =>
        resolve({ state: 'unknown', reason: own.reason!, late: lateEndOf(running, own.clock) });
      const inner = work.inner?.();
      if (inner === undefined) abandon();
      else inner.then(abandon, abandon);
    });
  });
}

function failureOf(error: unknown, own: CancellationToken): BoundedEnd<never> {
  const { reason } = own;
  return reason === undefined ? { state: 'failed', error } : { state: 'interrupted', error, reason };
}

/** How many microtasks killed work gets to say how it ended. */
const LAST_WORDS = 50;

/** The end of killed work that reacts without waiting for anything outside: then the truth is known after all. */
async function lastWords<T>(
  running: Promise<T>,
  own: CancellationToken,
  otherwise: BoundedEnd<T>,
): Promise<BoundedEnd<T>> {
  let end = otherwise;
  running.then(
    (value) => (end = { state: 'finished', value }),
    (error: unknown) => (end = failureOf(error, own)),
  );
  for (let hop = 0; hop < LAST_WORDS && end === otherwise; hop++) await Promise.resolve();
  return end;
}

async function lateEndOf(work: Promise<unknown>, clock: Clock): Promise<LateEnd> {
  try {
    const value = await work;
    return { at: clock.now(), state: 'finished', value };
  } catch (error) {
    return { at: clock.now(), state: 'failed', error };
  }
}
