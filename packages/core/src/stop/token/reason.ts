/** Why something was cancelled. Open to other words; these are the ones Whoa itself uses. */
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

/** What a caller of this process may say: words alone are the message. */
export type GivenReason = CancelReasonInit | string;

/**
 * Completes and freezes a reason. Whatever it is given, it makes one: a cancel never fails for lack of words.
 *
 * @returns The reason.
 */
export function createReason(given: GivenReason, now: number): CancelReason {
  const init = initFrom(given);
  const [message, by, via] = [textIn(init, 'message'), textIn(init, 'by'), textIn(init, 'via')];
  const at = fieldOf(init, 'at');
  return Object.freeze({
    kind: textIn(init, 'kind') || 'user',
    ...(message !== undefined && { message }),
    ...(by !== undefined && { by }),
    ...(via !== undefined && { via }),
    at: typeof at === 'number' && Number.isFinite(at) ? at : now,
  });
}

/** Words alone are the message, and so are those of an error. */
function initFrom(given: unknown): object {
  if (typeof given === 'string') return { message: given };
  if (typeof given !== 'object' || given === null) return {};
  return isError(given) ? { message: textIn(given, 'message') } : given;
}

function isError(value: unknown): value is Error {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}

function textIn(given: unknown, name: string): string | undefined {
  const value = fieldOf(given, name);
  return typeof value === 'string' ? value : undefined;
}

/** Reads a value that others made: it may be nothing, getters may throw, proxies may be revoked. */
function fieldOf(given: unknown, name: string): unknown {
  try {
    return (given as Record<string, unknown>)[name];
  } catch {
    return undefined;
  }
}

/**
 * Describes a reason in one short line for people: `superseded: a newer message arrived`.
 *
 * @returns The line.
 */
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
    // Its name as a text, its cause by hand: only Node takes them as options.
    error = withoutStack(() => new DOMException(`Cancelled (${reason.kind})`, 'AbortError'));
    Object.defineProperty(error, 'cause', { value: reason, configurable: true, writable: true });
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
function reasonOfSignal(signal: AbortSignal): CancelReasonInit {
  const error: unknown = signal.reason;
  if (typeof error === 'string') return { message: error, via: 'signal' };
  if (!isError(error)) return { via: 'signal' };
  const cause = fieldOf(error, 'cause');
  if (isReason(cause)) return cause;
  const [name, message] = [textIn(error, 'name'), textIn(error, 'message')];
  const said = { via: 'signal', ...(message !== undefined && { message }) };
  if (name === 'TimeoutError') return { kind: 'deadline', ...said };
  // What an abort says when its caller said nothing.
  return name === 'AbortError' ? { via: 'signal' } : said;
}

/** Calls back with the reason when a signal aborts, at once if it has, unless what is returned is disposed first. */
export function whenAborted(signal: AbortSignal, callback: (reason: CancelReasonInit) => unknown): Disposable {
  const forward = (): unknown => callback(reasonOfSignal(signal));
  if (signal.aborted) forward();
  else signal.addEventListener('abort', forward);
  return { [Symbol.dispose]: () => signal.removeEventListener('abort', forward) };
}

function isReason(value: unknown): value is CancelReason {
  return textIn(value, 'kind') !== undefined && typeof fieldOf(value, 'at') === 'number';
}
