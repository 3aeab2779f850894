import type { Rule } from '../rules.ts';

/** Why a vendor would return 400, with its own message. */
export interface ProviderRefusal {
  /** The broken rule; `RULES` names its source. */
  readonly rule: Rule;
  readonly message: string;
  /** The field, where the vendor names one. */
  readonly param?: string;
}

export interface StrictOptions {
  /** Whether a proof of thinking (a signature, redacted data, encrypted content) is genuine. By default all are. */
  readonly isGenuine?: (proof: string) => boolean;
}

/** Untrusted JSON. */
export type Fields = Readonly<Record<string, unknown>>;

export function toFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function toList(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.map(toFields) : [];
}

export function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Whether some text or list of blocks is empty. */
export function isEmptyContent(content: unknown): boolean {
  if (typeof content === 'string') return content.trim() === '';
  const blocks = toList(content);
  return blocks.length === 0 || blocks.some((block) => 'text' in block && toText(block['text']).trim() === '');
}

export function isJsonObject(text: unknown): boolean {
  try {
    const value: unknown = JSON.parse(toText(text));
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** Finds half of a character, which is not allowed in a request. Returns its path. */
export function findLoneSurrogate(value: unknown, at = ''): string | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : at || 'body';
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, item] of Object.entries(value)) {
    const where = name.isWellFormed() ? findLoneSurrogate(item, at === '' ? name : `${at}.${name}`) : at;
    if (where !== undefined) return where;
  }
  return undefined;
}

/** The tool names that both vendors allow. */
export const TOOL_NAME: RegExp = /^[a-zA-Z0-9_-]{1,64}$/;

/** Returns the first refusal. Checks are generators, so that each reads from top to bottom. */
export function findFirst(refusals: Iterable<ProviderRefusal>): ProviderRefusal | undefined {
  for (const refusal of refusals) return refusal;
  return undefined;
}
