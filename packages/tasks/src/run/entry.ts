import type { Json } from '@whoa/core';

/** Details beyond this are cut; what was cut is said in their place. */
const DETAILS_BYTES_MAX = 256 * 1024;

/** An event as it is kept: plain JSON, errors as data, details bounded. */
export function entryFor(event: object): Json {
  return JSON.parse(JSON.stringify(event, keep)) as Json;
}

function keep(key: string, value: unknown): unknown {
  if (value instanceof Error) return describeError(value);
  if (key !== 'details' || value === undefined) return value;
  const bytes = Buffer.byteLength(JSON.stringify(value));
  return bytes > DETAILS_BYTES_MAX ? { cut: true, bytes } : value;
}

/** An error as data. */
export function describeError(error: unknown): { message: string; code?: string } {
  const message = error instanceof Error ? error.message : String(error);
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? { message, code } : { message };
}

type Entry = {
  readonly type: string;
  readonly text?: string;
  readonly callId?: string;
  readonly result?: { callId?: string };
};

const WORDS: ReadonlySet<string> = new Set(['text', 'thinking']);

/**
 * Adds an entry to those that wait to be written. Words that follow each other become one, a call's newer state replaces
 * the older, and a turn or call that has ended needs no drafts: its end holds them.
 */
export function withEntry(waiting: readonly Json[], entry: Json): Json[] {
  const added = entry as unknown as Entry;
  const last = waiting.at(-1) as unknown as Entry | undefined;
  if (WORDS.has(added.type) && last?.type === added.type) {
    return [...waiting.slice(0, -1), { ...added, text: `${last.text ?? ''}${added.text ?? ''}` } as unknown as Json];
  }
  const isDraft = draftsOf(added);
  return [...waiting.filter((one) => !isDraft(one as unknown as Entry)), entry];
}

function draftsOf({ type, callId, result }: Entry): (one: Entry) => boolean {
  if (type === 'turn-end') return (one) => WORDS.has(one.type);
  const call = type === 'call-update' ? callId : type === 'call-end' ? result?.callId : undefined;
  return call === undefined ? () => false : (one) => one.type === 'call-update' && one.callId === call;
}
