import { isObject, type Rule, SettingsError, safely, unexpected } from './settings.ts';

/**
 * Your data about a message or a run: its user, tenant, locale. Plain data, at most 16 KB as JSON. Declare its type once, and
 * it is the type of `context` everywhere: `declare module '@whoa/core' { interface AppContext extends MyContext {} }`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: users extend it.
export interface AppContext {}

/** Passed to hooks with each event. */
export interface HookContext {
  /** The context of the run or message that the event is about. */
  readonly context?: AppContext | undefined;
}

const MAX_CONTEXT_BYTES = 16 * 1024;

/** The rule for a context. It is copied, so that no one can change it for others. */
export const contextRule: Rule = /*#__PURE__*/ safely((value, field) => {
  if (!isObject(value) || Array.isArray(value) || !isPlain(value)) throw unexpected(field, value, 'plain JSON data');
  const text = toContextKey(value as AppContext);
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > MAX_CONTEXT_BYTES)
    throw new SettingsError(field, `expected at most ${MAX_CONTEXT_BYTES} bytes as JSON, got ${bytes}`);
  return JSON.parse(text) as unknown;
});

/**
 * Converts a context to text: two contexts are equal if these texts are.
 *
 * @returns JSON with sorted names; empty without a context.
 */
export function toContextKey(context: AppContext | undefined): string {
  return context === undefined ? '' : JSON.stringify(context, sortNames);
}

function sortNames(_: string, value: unknown): unknown {
  if (!isObject(value) || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Whether JSON represents the whole value. */
export function isPlain(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  if (!isObject(value)) return value === null || ['string', 'boolean', 'undefined'].includes(typeof value);
  const prototype: unknown = Object.getPrototypeOf(value);
  const isData = Array.isArray(value) || prototype === Object.prototype || prototype === null;
  return isData && !('toJSON' in value) && Object.values(value).every(isPlain);
}
