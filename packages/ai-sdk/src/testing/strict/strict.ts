import type { Rule } from '../rules.ts';

/** Why a vendor would answer 400, in its own words. */
export interface ProviderRefusal {
  /** The rule that is broken; `RULES` says where it is written. */
  readonly rule: Rule;
  readonly message: string;
  /** The field it is about, where the vendor names one. */
  readonly param?: string;
}

export interface StrictOptions {
  /** Whether a proof of thinking (a signature, redacted data, encrypted content) is genuine. Any is, unless said. */
  readonly isGenuine?: (proof: string) => boolean;
}

/** Anything that came in as JSON, looked at with care. */
export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function listOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}

export function textIn(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Whether some text or list of blocks says nothing at all. */
export function isEmptyContent(content: unknown): boolean {
  if (typeof content === 'string') return content.trim() === '';
  const blocks = listOf(content);
  return blocks.length === 0 || blocks.some((block) => 'text' in block && textIn(block['text']).trim() === '');
}

export function isJsonObject(text: unknown): boolean {
  try {
    const value: unknown = JSON.parse(textIn(text));
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** What is not allowed in the middle of a request: half of a character. Says where it stands. */
export function loneSurrogateIn(value: unknown, at = ''): string | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : at || 'body';
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, item] of Object.entries(value)) {
    const where = name.isWellFormed() ? loneSurrogateIn(item, at === '' ? name : `${at}.${name}`) : at;
    if (where !== undefined) return where;
  }
  return undefined;
}

/** What both vendors allow in the name of a tool. */
export const TOOL_NAME: RegExp = /^[a-zA-Z0-9_-]{1,64}$/;

/** The first refusal there is. Checks are written as generators, so that each reads from top to bottom. */
export function firstOf(refusals: Iterable<ProviderRefusal>): ProviderRefusal | undefined {
  for (const refusal of refusals) return refusal;
  return undefined;
}
