import { systemClock } from '@whoa/core/embed';
import { ModelError } from '@whoa/core/model';
import { asText } from './messages/as-json.ts';

/** The fields that provider packages set on the errors they throw and stream. */
interface ProviderError {
  readonly message?: unknown;
  readonly name?: unknown;
  readonly statusCode?: unknown;
  readonly isRetryable?: unknown;
  readonly responseHeaders?: Readonly<Record<string, string>>;
  /** The vendor's own error data, unchanged. */
  readonly data?: unknown;
  readonly error?: unknown;
  readonly type?: unknown;
  readonly code?: unknown;
  readonly cause?: unknown;
}

export interface Circumstances {
  /** The model that replied, for the message. */
  readonly model: string;
  /** Whether any of the reply had arrived. */
  readonly hasContent: boolean;
}

/** Creates the model error for any failure: whether the same request may be sent again, and when. */
export function modelErrorFrom(error: unknown, { model, hasContent }: Circumstances): ModelError {
  const { statusCode, isRetryable, responseHeaders } = asProviderError(error);
  const status = typeof statusCode === 'number' ? statusCode : undefined;
  const wire = findNetworkCode(error);
  const message = describeProviderError(error);
  const options = { cause: error, status, retryAfterMs: parseRetryAfter(responseHeaders) };
  if (isMalformed(error)) {
    const text = `${model} sent an invalid reply: ${message}`;
    // Once text has been shown, a retry could contradict it, and a server that sends garbage will do so again.
    return new ModelError(text, { ...options, isRetryable: !hasContent });
  }
  if (wire !== undefined && status === undefined) {
    return new ModelError(`The connection to ${model} broke (${wire}): ${message}`, { ...options, isRetryable: true });
  }
  const text = `${model} ${status === undefined ? 'failed' : `answered ${status}`}: ${message}${adviceFor(status)}`;
  const kinds = findKinds(error);
  const isPassing = /^(408|409|429|[5-9]\d\d)$/.test(`${status}`) || kinds.some((kind) => TRANSIENT_KINDS.has(kind));
  const may = shouldRetry(responseHeaders) ?? (typeof isRetryable === 'boolean' ? isRetryable : isPassing);
  return new ModelError(text, { ...options, isRetryable: may && !kinds.includes('insufficient_quota') });
}

/** The error for a reply that ended without the provider's end marker. */
export function createTruncatedReplyError(model: string): ModelError {
  return new ModelError(`The reply of ${model} was cut off: the stream ended before it was complete; ask again`, {
    isRetryable: true,
  });
}

function adviceFor(status: number | undefined): string {
  if (status === 401 || status === 403) return ' (check the API key and what it may use)';
  if (status === 404) return ' (check the name of the model and the base URL)';
  return '';
}

/** Both vendors send an explicit header when they know better than the status does. */
function shouldRetry(headers: ProviderError['responseHeaders']): boolean | undefined {
  const header = headers?.['x-should-retry'];
  return header === 'true' ? true : header === 'false' ? false : undefined;
}

/** The kinds that vendors use for temporary failures in mid-stream, where there is no status. */
const TRANSIENT_KINDS: ReadonlySet<unknown> = new Set([
  'api_error',
  'overloaded',
  'overloaded_error',
  'rate_limit_error',
  'rate_limit_exceeded',
  'server_error',
  'server_is_overloaded',
  'timeout_error',
]);

/** Collects every type and code in an error and in the vendor's data inside it. */
function findKinds(error: unknown): readonly unknown[] {
  return unwrapLayers(error).flatMap(({ type, code }) => [type, code]);
}

function unwrapLayers(error: unknown): readonly ProviderError[] {
  const outer = asProviderError(error);
  const data = asProviderError(outer.data);
  return [outer, data, asProviderError(outer.error), asProviderError(data.error)];
}

/** Limits the delay that a server can ask for. */
const MAX_RETRY_AFTER_MS = 3_600_000;

function parseRetryAfter(headers: ProviderError['responseHeaders']): number | undefined {
  const ms = Number.parseFloat(headers?.['retry-after-ms'] ?? '');
  if (Number.isFinite(ms)) return clamp(ms);
  const header = headers?.['retry-after'];
  if (header === undefined) return undefined;
  const seconds = Number(header);
  if (Number.isFinite(seconds)) return clamp(seconds * 1_000);
  const date = Date.parse(header);
  // Use the server's own clock if it sends one.
  const now = Date.parse(headers?.['date'] ?? '') || systemClock.now();
  return Number.isNaN(date) ? undefined : clamp(date - now);
}

function clamp(ms: number): number {
  return Math.min(Math.max(0, ms), MAX_RETRY_AFTER_MS);
}

const NETWORK_CODES = /^(E[A-Z]+|UND_ERR_[A-Z_]+|ConnectionRefused|ConnectionClosed|FailedToOpenSocket)$/;

/** Finds the code of a broken connection anywhere in the chain of causes. */
function findNetworkCode(error: unknown): string | undefined {
  let current = error;
  for (let depth = 0; depth < 8 && current instanceof Error; depth++) {
    const { code, cause } = asProviderError(current);
    if (typeof code === 'string' && NETWORK_CODES.test(code)) return code;
    current = cause;
  }
  return undefined;
}

const MALFORMED = new Set(['AI_JSONParseError', 'AI_TypeValidationError', 'AI_InvalidResponseDataError']);

function isMalformed(error: unknown): boolean {
  const { name, message } = asProviderError(error);
  if (typeof name === 'string' && MALFORMED.has(name)) return true;
  // The Anthropic package reports a first frame that it cannot read as a plain error with only this message.
  return error instanceof Error && name === 'Error' && message === 'Expected a normalized Anthropic stream error';
}

/** A gateway may return a whole HTML page. */
const MAX_MESSAGE_CHARS = 2_000;

function describeProviderError(error: unknown): string {
  const messages = unwrapLayers(error).map(({ message }) => message);
  const message = asText(messages.find((text) => typeof text === 'string' && text !== '') ?? error);
  if (message.length <= MAX_MESSAGE_CHARS) return message;
  return `${message.slice(0, MAX_MESSAGE_CHARS)} [+${message.length - MAX_MESSAGE_CHARS} characters]`;
}

function asProviderError(error: unknown): ProviderError {
  return typeof error === 'object' && error !== null ? (error as ProviderError) : {};
}
