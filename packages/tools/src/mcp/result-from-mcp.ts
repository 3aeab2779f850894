import type { CallToolResult, ContentBlock, Progress } from '@modelcontextprotocol/client';
import type { ContentPart, Json, ToolResult } from '@whoa/core';

/** More text than this from one call is cut, with a marker. */
const TEXT_CHARS_MAX = 100_000;

/** A server's answer as a result: text and images for the model, structured content for people. */
export function resultFromMcp({ content, structuredContent, isError }: CallToolResult): ToolResult {
  const parts = content.map(partFrom);
  const text = parts.every((part) => part.type === 'text');
  const said = structuredContent !== undefined && parts.length === 0 ? JSON.stringify(structuredContent) : undefined;
  return {
    content: said ?? (text ? cut(parts.map((part) => part.text).join('\n')) : cutParts(parts)),
    ...(structuredContent !== undefined && { details: { structuredContent: structuredContent as Json } }),
    ...(isError === true && { isError }),
  };
}

/** What there is to show while a call is at work: `3 of 10: reading`. */
export function describeProgress({ progress, total, message }: Progress): ToolResult {
  const amount = total === undefined ? `${progress}` : `${progress} of ${total}`;
  return {
    content: message === undefined ? amount : `${amount}: ${message}`,
    details: { progress, ...(total !== undefined && { total }) },
  };
}

function partFrom(block: ContentBlock): ContentPart {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text };
    case 'image':
      return { type: 'image', mediaType: block.mimeType, data: block.data };
    case 'audio':
      return { type: 'text', text: `[audio ${block.mimeType}]` };
    case 'resource_link':
      return { type: 'text', text: `[${block.name}: ${block.uri}]` };
    case 'resource':
      return 'text' in block.resource
        ? { type: 'text', text: `${block.resource.uri}\n${block.resource.text}` }
        : { type: 'text', text: `[${block.resource.uri}: ${block.resource.mimeType ?? 'binary data'}]` };
  }
}

function cutParts(parts: readonly ContentPart[]): ContentPart[] {
  return parts.map((part) => (part.type === 'text' ? { ...part, text: cut(part.text) } : part));
}

function cut(text: string): string {
  if (text.length <= TEXT_CHARS_MAX) return text;
  const kept = text.slice(0, TEXT_CHARS_MAX).replace(/[\uD800-\uDBFF]$/, '');
  return `${kept}\n[+${text.length - kept.length} characters]`;
}
