/** Why something was cancelled. Callers may use other kinds; these are the ones Whoa itself uses. */
type CancelKind =
  | 'user'
  | 'superseded'
  | 'deadline'
  | 'budget'
  | 'shutdown'
  | 'disconnect'
  | 'parent'
  | 'lease-lost'
  | (string & {});

/** Why something was cancelled, as plain data that survives JSON and a restart. The first reason wins. */
export interface CancelReason {
  readonly kind: CancelKind;
  readonly message?: string;
  /** Who requested the cancel. */
  readonly by?: string;
  /** How the cancel arrived, for example `signal`. */
  readonly via?: string;
  /** The W3C trace context of the request, for telemetry. */
  readonly traceparent?: string;
  /** When, in milliseconds since the epoch. */
  readonly at: number;
}

/** The fields a caller sets; the rest is filled in. Pass a whole `CancelReason` to keep its time. */
export type CancelReasonInit = { readonly [Field in keyof CancelReason]?: CancelReason[Field] | undefined };

/** A reason as callers in this process give it: a string is the message. */
export type CancelReasonLike = CancelReasonInit | string;

/**
 * Completes and freezes a reason. Accepts any value: a cancel never fails because of its reason.
 *
 * @returns The reason.
 */
export function createReason(given: CancelReasonLike, now: number): CancelReason {
  const init = initFrom(given);
  const texts = ['message', 'by', 'via', 'traceparent'].map((name) => [name, findText(init, name)] as const);
  const at = findField(init, 'at');
  return Object.freeze({
    kind: findText(init, 'kind') || 'user',
    ...Object.fromEntries(texts.filter(([, text]) => text !== undefined)),
    at: typeof at === 'number' && Number.isFinite(at) ? at : now,
  });
}

/** A string is the message, and so is the message of an error. */
function initFrom(given: unknown): object {
  if (typeof given === 'string') return { message: given };
  if (typeof given !== 'object' || given === null) return {};
  return isError(given) ? { message: findText(given, 'message') } : given;
}

function isError(value: unknown): value is Error {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}

function findText(given: unknown, name: string): string | undefined {
  const value = findField(given, name);
  return typeof value === 'string' ? value : undefined;
}

/** Reads a field of an untrusted value: it may not be an object, getters may throw, proxies may be revoked. */
function findField(given: unknown, name: string): unknown {
  try {
    return (given as Record<string, unknown>)[name];
  } catch {
    return undefined;
  }
}

/**
 * Describes a reason in one short line for users: `superseded: a newer message arrived`.
 *
 * @returns The line.
 */
export function describeReason(reason: CancelReason): string {
  return reason.message === undefined ? reason.kind : `${reason.kind}: ${reason.message}`;
}

const abortErrors = new WeakMap<CancelReason, DOMException>();

/**
 * The value of `signal.reason`. Keep it a `DOMException` named `AbortError`: provider SDKs turn any other value into an
 * ordinary failure. The message gives third parties only the kind; the whole reason is in `cause`.
 */
export function toAbortError(reason: CancelReason): DOMException {
  let error = abortErrors.get(reason);
  if (error === undefined) {
    // Pass the name as a string and set the cause by hand: only Node accepts them as options.
    error = withoutStack(() => new DOMException(`Cancelled (${reason.kind})`, 'AbortError'));
    Object.defineProperty(error, 'cause', { value: reason, configurable: true, writable: true });
    abortErrors.set(reason, error);
  }
  return error;
}

/**
 * Creates an error without a stack. The reason already says who stopped what and why; a stack would only show this
 * package. It would also cost more than the rest of a cancel, because streams format the stack of every error they end
 * with.
 */
function withoutStack<T>(create: () => T): T {
  const { stackTraceLimit } = Error;
  // Where `Error` is frozen, this does nothing and the error has a stack.
  Reflect.set(Error, 'stackTraceLimit', 0);
  try {
    return create();
  } finally {
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  }
}

/** Reads the reason of a caller's signal: ours if it carries one, otherwise what the error says. */
function reasonOfSignal(signal: AbortSignal): CancelReasonInit {
  const error: unknown = signal.reason;
  if (typeof error === 'string') return { message: error, via: 'signal' };
  if (!isError(error)) return { via: 'signal' };
  const cause = findField(error, 'cause');
  if (isReason(cause)) return cause;
  const [name, message] = [findText(error, 'name'), findText(error, 'message')];
  const reason = { via: 'signal', ...(message !== undefined && { message }) };
  if (name === 'TimeoutError') return { kind: 'deadline', ...reason };
  // The default reason of an abort.
  return name === 'AbortError' ? { via: 'signal' } : reason;
}

/** Calls back with the reason when a signal aborts, immediately if it has. Dispose the result to stop listening. */
export function whenAborted(signal: AbortSignal, callback: (reason: CancelReasonInit) => unknown): Disposable {
  const forward = (): unknown => callback(reasonOfSignal(signal));
  if (signal.aborted) forward();
  else signal.addEventListener('abort', forward);
  return { [Symbol.dispose]: () => signal.removeEventListener('abort', forward) };
}

function isReason(value: unknown): value is CancelReason {
  return findText(value, 'kind') !== undefined && typeof findField(value, 'at') === 'number';
}
