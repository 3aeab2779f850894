import { settings } from '@whoa/core/internal';

/** Both of OpenAI's formats limit names to 64 characters, and all vendors to these. */
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** Returns a tool name that every provider accepts: models invent names, and providers refuse those in a history. */
export function safeName(name: string): string {
  return NAME.test(name) ? name : name.replace(/[^a-zA-Z0-9_-]/gu, '_').slice(0, 64) || 'unnamed_tool';
}

/** Wraps arguments that were not a JSON object: providers accept nothing else. */
export function inputObject(input: unknown): unknown {
  return settings.isObject(input) && !settings.isList(input) ? input : { invalidArguments: input };
}

/** Nothing that a provider accepts is nested deeper. */
const MAX_DEPTH = 100;

/**
 * Returns the value without lone surrogates: half of a character, as at the end of a cut text, makes a whole request
 * invalid. A value without any is returned unchanged.
 */
export function wellFormed<T>(value: T): T {
  return toWellFormed(value, new Map(), 0) as T;
}

/** `seen` prevents walking a value twice that contains itself, or contains another twice. */
function toWellFormed(value: unknown, seen: Map<object, unknown>, depth: number): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value;
  if (seen.has(value)) return seen.get(value);
  seen.set(value, value);
  const fix = (item: unknown): unknown => toWellFormed(item, seen, depth + 1);
  const safe = settings.isList(value) ? sameOr(value, value.map(fix)) : wellFormedFields(value, fix);
  seen.set(value, safe);
  return safe;
}

function wellFormedFields(value: object, fix: (item: unknown) => unknown): object {
  // Bytes, URLs and dates contain no text to fix.
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const entries = Object.entries(value);
  const safe = entries.map(([name, item]) => [name.toWellFormed(), fix(item)] as const);
  const isSame = safe.every(([name, item], index) => name === entries[index]![0] && item === entries[index]![1]);
  return isSame ? value : Object.fromEntries(safe);
}

/** Returns the original list if nothing in it changed. */
export function sameOr<T>(before: readonly T[], after: readonly T[]): readonly T[] {
  return before.length === after.length && after.every((item, index) => item === before[index]) ? before : after;
}
