import type { CallToolResult, ContentBlock, Progress } from '@modelcontextprotocol/client';
import type { Json, ToolResult } from '@whoa/core';
import type { ContentPart } from '@whoa/core/embed';

/** More text than this from one call is cut, with a marker. */
const MAX_TEXT_CHARS = 100_000;
/** The limit for all images of one call, as base64. Others are named and left out. */
const MAX_IMAGES_CHARS = 8_000_000;
/** Deeper values cannot be serialised. */
const MAX_LEVELS = 200;
const TOO_DEEP = '[structured content left out: it is nested too deeply]';
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

/** Converts a server's response to a result: text and images for the model, structured content for users. */
export function resultFromMcp({ content, structuredContent: given, isError }: CallToolResult): ToolResult {
  const isTooDeep = isDeeperThan(given, MAX_LEVELS);
  const structuredContent = isTooDeep ? undefined : given;
  const parts = content.map(partFrom);
  if (isTooDeep) parts.push({ type: 'text', text: TOO_DEEP });
  const text = parts.every((part) => part.type === 'text');
  const fallback =
    structuredContent !== undefined && parts.length === 0 ? JSON.stringify(structuredContent) : undefined;
  return {
    content:
      fallback === undefined
        ? text
          ? cut(parts.map((part) => part.text).join('\n'))
          : cutParts(parts)
        : cut(fallback),
    ...(structuredContent !== undefined && { details: { structuredContent: structuredContent as Json } }),
    ...(isError === true && { isError }),
  };
}

/** The progress of a running call: `3 of 10: reading`. */
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

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((part) => isDeeperThan(part, levels - 1));
}

function cutParts(parts: readonly ContentPart[]): ContentPart[] {
  let [textLeft, imagesLeft] = [MAX_TEXT_CHARS, MAX_IMAGES_CHARS];
  const kept: ContentPart[] = [];
  for (const part of parts) {
    if (part.type === 'text') {
      if (textLeft <= 0) continue;
      kept.push({ ...part, text: cut(part.text, textLeft) });
      textLeft -= part.text.length;
    } else if (part.type !== 'image') kept.push(part);
    else if (part.data.length > imagesLeft || !IMAGE_TYPES.includes(part.mediaType)) {
      const bytes = Math.floor((part.data.length * 3) / 4);
      kept.push({ type: 'text', text: `[${part.mediaType} of ${bytes} bytes left out]` });
    } else {
      imagesLeft -= part.data.length;
      kept.push(part);
    }
  }
  const left = parts.filter((part) => part.type === 'text').length - kept.filter((part) => part.type === 'text').length;
  return textLeft < 0 && left > 0 ? [...kept, { type: 'text', text: `[${left} more parts of text left out]` }] : kept;
}

function cut(text: string, maxChars = MAX_TEXT_CHARS): string {
  if (text.length <= maxChars) return text;
  const kept = text.slice(0, maxChars).replace(/[\uD800-\uDBFF]$/, '');
  return `${kept}\n[+${text.length - kept.length} characters]`;
}
