import { isCancelledError } from '../stop/errors.ts';
import type { Content, ContentPart, Json, ToolResult } from './result.ts';

/** More than any tool needs. A list may lie about its length, and must not be read forever. */
const MAX_PARTS = 10_000;

const NO_CONTENT = 'It returned no content.';
const UNREADABLE: ToolResult = Object.freeze({
  content: 'It ended, but what it returned could not be read.',
  isError: true,
});

/** Reads a tool's result once, copies and freezes it. Never throws: not every tool is type-checked. */
export function normalizeResult(value: unknown): ToolResult {
  if (typeof value === 'string') return { content: value };
  try {
    return readResult(value);
  } catch {
    // A getter or a proxy that throws. The work is done anyway.
    return UNREADABLE;
  }
}

function readResult(value: unknown): ToolResult {
  if (value === undefined || value === null) return Object.freeze({ content: NO_CONTENT });
  const isResult = typeof value === 'object' && ['content', 'details', 'isError'].some((field) => field in value);
  const json = isResult ? undefined : cloneJson(value);
  // Plain data: the model reads it as JSON.
  if (json !== undefined) return Object.freeze({ content: JSON.stringify(json), details: json });
  const { content, details, isError } = value as { content?: unknown; details?: unknown; isError?: unknown };
  const read = copyJson(details);
  return Object.freeze({
    content: readContent(content),
    ...(read !== undefined && { details: read }),
    ...(isError === true && { isError }),
  });
}

function readContent(content: unknown): Content {
  if (typeof content === 'string') return content;
  if (content === undefined || content === null) return NO_CONTENT;
  if (!Array.isArray(content)) return textFrom(content);
  const given = content as readonly unknown[];
  const parts = Array.from({ length: Math.min(given.length, MAX_PARTS) }, (_, index) => readPart(given[index]));
  const cut = given.length - parts.length;
  if (cut > 0) parts.push(readPart(`[… ${cut} more parts cut …]`));
  return Object.freeze(parts);
}

function readPart(part: unknown): ContentPart {
  const { type, text, mediaType, data } = Object(part) as Record<string, unknown>;
  if (type === 'image' && typeof mediaType === 'string' && typeof data === 'string') {
    return Object.freeze({ type, mediaType, data });
  }
  const content = type === 'text' && typeof text === 'string' ? text : typeof part === 'string' ? part : textFrom(part);
  return Object.freeze({ type: 'text', text: content });
}

/** Formats any value as text for a model, as JSON where possible. */
function textFrom(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // `String` of a list would print all its entries, and the list may be huge.
    return Array.isArray(value) ? `(a list of ${value.length})` : String(value);
  }
}

/** Returns a frozen copy that shares nothing with the value. A value that is not JSON becomes a note about it. */
export function copyJson(value: unknown): Json | undefined {
  try {
    return cloneJson(value);
  } catch {
    // A cycle, a bigint, a getter that throws: it could neither be stored nor shown.
    return Object.freeze({ cut: 'it was not JSON' });
  }
}

/** Returns a frozen copy of JSON. Throws if the value is not JSON. */
export function cloneJson(value: unknown): Json | undefined {
  const text = JSON.stringify(value);
  return text === undefined ? undefined : deepFreeze(JSON.parse(text) as Json);
}

/** Freezes a value and everything in it. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) deepFreeze(part);
  return Object.freeze(value);
}

/**
 * Describes an error as others may read it: for a cancel, only its kind. Never throws.
 *
 * @returns The text.
 */
export function describeError(error: unknown): string {
  try {
    if (isCancelledError(error)) return `Cancelled (${String(error.reason.kind)})`;
    if (typeof error !== 'object' || error === null) return String(error);
    const { message, name } = error as { message?: unknown; name?: unknown };
    if (typeof message === 'string' && message !== '') return message;
    if (message !== undefined && message !== '') return textFrom(message);
    return typeof name === 'string' ? name : textFrom(error);
  } catch {
    return 'it threw something that could not be read';
  }
}

/**
 * Checks whether an error only reports that its work stopped when asked to.
 *
 * @returns True for abort errors and cancelled errors.
 */
export function isCausedByCancel(error: unknown): boolean {
  if (isCancelledError(error)) return true;
  try {
    return (error as { name?: unknown } | undefined)?.name === 'AbortError';
  } catch {
    return false;
  }
}
