import { type Cleanup, type CleanupError, Cleanups } from './cleanup.ts';
import type { Clock } from './clock.ts';
import type { LateEnd } from './ledger.ts';
import type { StopLevel } from './level.ts';
import type { CancelReason } from './reason.ts';
import { shield } from './shield.ts';
import { CancellationToken } from './token.ts';
import { type WaitEnd, waitUnder } from './wait.ts';

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
  readonly whenCancelled: WhenCancelled;
  /** `finish` work needs one. */
  readonly timeoutMs: number | undefined;
  readonly cleanupMs: number;
  /** Ordinary work sits a drain out and is abandoned at `kill`. Nested work hears every level and bounds itself. */
  readonly nested: boolean;
  /** Called with the work's own token before it starts. */
  onStart?(own: CancellationToken): void;
  /** A cancel has to wait for this `finish` work. */
  onWait?(level: StopLevel, reason: CancelReason): void;
  onCleanupError(error: CleanupError): void;
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
  | { readonly state: 'not-started'; readonly reason: CancelReason };

/**
 * Runs work so that the wait for it always ends: when it does, or at `kill`. Then it cleans up, bounded, and looks once
 * more. What is still pending is abandoned: its end is `unknown`, and a late result can change nothing.
 */
export async function runBounded<T, Meaning>(work: BoundedWork<T, Meaning>): Promise<Meaning> {
  const { token } = work;
  if (token.isCancelled) return work.onEnd({ state: 'not-started', reason: token.reason! });
  const own = createOwnToken(work);
  const cleanups = new Cleanups(work);
  const warning = warnWhenCancelMustWait(work);
  let truth: BoundedEnd<T>;
  try {
    work.onStart?.(own);
    const running = start(work, new Context(own, cleanups.defer));
    if (work.nested) await settled(running);
    let end = await waitUnder(running, own, 'kill');
    if (cleanups.close()) await cleanups.run(own, work.cleanupMs);
    if (end.by === 'level') end = await lastWords(running, end);
    truth = endOf(end, running, own);
  } finally {
    warning?.[Symbol.dispose]();
    own[Symbol.dispose]();
  }
  // After its token has ended: whoever hears of the end may cancel, and that no longer concerns this work.
  return work.onEnd(truth);
}

type Bound = Omit<BoundedWork<unknown, unknown>, 'execute' | 'onEnd'>;

function createOwnToken(work: Bound): CancellationToken {
  const { token, name, timeoutMs } = work;
  if (work.whenCancelled === 'finish') {
    if (timeoutMs === undefined)
      throw new TypeError(`timeoutMs: '${name}' finishes when cancelled, so it needs a bound`);
    return shield(token, { boundMs: timeoutMs, name });
  }
  const own = new CancellationToken({ parent: token, name, hears: work.nested ? 'drain' : 'abort' });
  if (timeoutMs !== undefined) {
    own.cancelAfter(
      timeoutMs,
      { kind: 'deadline', message: `${name} took longer than ${timeoutMs} ms` },
      { how: 'now' },
    );
  }
  return own;
}

function warnWhenCancelMustWait(work: Bound): Disposable | undefined {
  if (work.whenCancelled !== 'finish' || work.onWait === undefined) return undefined;
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

/** Waits for an end of any kind. */
async function settled(work: Promise<unknown>): Promise<void> {
  await work.then(
    () => {},
    () => {},
  );
}

/** How many microtasks killed work gets to say how it ended. */
const LAST_WORDS = 50;

/** The end of killed work that reacts without waiting for anything outside: then the truth is known after all. */
async function lastWords<T>(work: Promise<T>, otherwise: WaitEnd<T>): Promise<WaitEnd<T>> {
  let end = otherwise;
  work.then(
    (value) => (end = { by: 'value', value }),
    (error: unknown) => (end = { by: 'error', error }),
  );
  for (let hop = 0; hop < LAST_WORDS && end === otherwise; hop++) await Promise.resolve();
  return end;
}

function endOf<T>(end: WaitEnd<T>, work: Promise<T>, own: CancellationToken): BoundedEnd<T> {
  switch (end.by) {
    case 'value':
      return { state: 'finished', value: end.value };
    case 'error':
      return own.isCancelled
        ? { state: 'interrupted', error: end.error, reason: own.reason! }
        : { state: 'failed', error: end.error };
    case 'level':
      return { state: 'unknown', reason: own.reason!, late: lateEndOf(work, own.clock) };
  }
}

async function lateEndOf(work: Promise<unknown>, clock: Clock): Promise<LateEnd> {
  try {
    const value = await work;
    return { at: clock.now(), state: 'finished', value };
  } catch (error) {
    return { at: clock.now(), state: 'failed', error };
  }
}
