import type { Content } from '@whoa/core';
import type { ContentPart } from '@whoa/core/embed';

/** A part of a prompt. The same in both protocol versions. */
export type PromptBlock = { readonly type: string } & Readonly<Record<string, unknown>>;

/** Converts a client's prompt for the model. Block types that we do not support are named, not dropped. */
export function toContent(blocks: readonly PromptBlock[]): Content {
  const parts = blocks.map(toPart);
  return parts.every((part) => part.type === 'text') ? parts.map((part) => part.text).join('\n') : parts;
}

/** Converts content into blocks. The same in both protocol versions. */
export function toBlocks(
  content: Content,
): ({ type: 'text'; text: string } | { type: 'image'; data: string; mimeType: string })[] {
  const parts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content;
  return parts.map((part) =>
    part.type === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'image', data: part.data, mimeType: part.mediaType },
  );
}

/** Fences lines so that clients show them literally: they render text as Markdown, which can hide a part of it. */
export function fenced(lines: readonly string[]): string {
  const text = lines.join('\n');
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

function toPart(block: PromptBlock): ContentPart {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: toText(block['text']) };
    case 'image':
      return { type: 'image', mediaType: toText(block['mimeType']), data: toText(block['data']) };
    case 'resource_link':
      return { type: 'text', text: `[${toText(block['name'])}](${toText(block['uri'])})` };
    case 'resource':
      return { type: 'text', text: toResourceText(block['resource']) };
    default:
      return { type: 'text', text: `(${block.type} that cannot be read here)` };
  }
}

function toResourceText(value: unknown): string {
  const { uri, text } = (value ?? {}) as { uri?: unknown; text?: unknown };
  if (typeof text !== 'string') return `(${toText(uri)}, which is not text)`;
  return `<resource uri="${toText(uri)}">\n${text}\n</resource>`;
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
