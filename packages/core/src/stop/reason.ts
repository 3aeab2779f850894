/** Why something was cancelled. Open to other words; these are the ones Whoa itself uses. */
export type CancelKind =
  | 'user'
  | 'superseded'
  | 'deadline'
  | 'budget'
  | 'shutdown'
  | 'disconnect'
  | 'parent'
  | 'lease-lost'
  | (string & {});

/** Why, as plain data: it survives JSON, another process and a restart unchanged. The first reason wins. */
export interface CancelReason {
  readonly kind: CancelKind;
  readonly message?: string;
  /** Who asked. */
  readonly by?: string;
  /** Which door the cancel came through. */
  readonly via?: string;
  /** When, in milliseconds since the epoch. */
  readonly at: number;
}

/** What a caller says; the rest is filled in. Pass a whole `CancelReason` on to keep its time. */
export type CancelReasonInit = Partial<CancelReason>;

/** Completes and freezes a reason. */
export function createReason(init: CancelReasonInit, now: number): CancelReason {
  const { kind = 'user', message, by, via, at = now } = init;
  return Object.freeze({
    kind,
    ...(message !== undefined && { message }),
    ...(by !== undefined && { by }),
    ...(via !== undefined && { via }),
    at,
  });
}

/** One short line for people: `superseded: a newer message arrived`. */
export function describeReason(reason: CancelReason): string {
  return reason.message === undefined ? reason.kind : `${reason.kind}: ${reason.message}`;
}

const abortErrors = new WeakMap<CancelReason, DOMException>();

/**
 * What `signal.reason` is. Keep it a `DOMException` named `AbortError`: provider SDKs turn any other value into an
 * ordinary failure. The message tells third parties the kind only; the whole reason is in `cause`.
 */
export function abortErrorOf(reason: CancelReason): DOMException {
  let error = abortErrors.get(reason);
  if (error === undefined) {
    error = withoutStack(() => new DOMException(`Cancelled (${reason.kind})`, { name: 'AbortError', cause: reason }));
    abortErrors.set(reason, error);
  }
  return error;
}

/**
 * Who stopped what, and why, is in the reason; a stack would only show this package. It would cost more than the rest of
 * a cancel: streams write the stack of every error they end with out as text.
 */
function withoutStack<T>(create: () => T): T {
  const { stackTraceLimit } = Error;
  // Where somebody has frozen it there is a stack after all.
  Reflect.set(Error, 'stackTraceLimit', 0);
  try {
    return create();
  } finally {
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  }
}

/** Reads the reason of somebody's signal: ours if it carries one, else what can be told from the error. */
export function reasonOfSignal(signal: AbortSignal): CancelReasonInit {
  const error: unknown = signal.reason;
  if (!(error instanceof Error)) return { kind: 'user', via: 'signal' };
  if (isReason(error.cause)) return error.cause;
  if (error.name === 'TimeoutError') return { kind: 'deadline', message: error.message, via: 'signal' };
  if (error.name === 'AbortError') return { kind: 'user', via: 'signal' };
  return { kind: 'user', message: error.message, via: 'signal' };
}

function isReason(value: unknown): value is CancelReason {
  if (typeof value !== 'object' || value === null) return false;
  const { kind, at } = value as Partial<CancelReason>;
  return typeof kind === 'string' && typeof at === 'number';
}
