import type { LanguageModelV4Message, LanguageModelV4Prompt, SharedV4ProviderMetadata } from '@ai-sdk/provider';
import { type Content, toText } from '@whoa/core';
import type { ContentPart } from '@whoa/core/embed';
import type { ModelMessage, ModelRequest } from '@whoa/core/model';
import { decodeSignature } from '../signature.ts';
import { inputObject, safeName, wellFormed } from './wire-safe.ts';

type Of<Role extends LanguageModelV4Message['role']> = Extract<LanguageModelV4Message, { role: Role }>;
type ResultPart = Extract<Of<'tool'>['content'][number], { type: 'tool-result' }>;
type ToolMessage = Extract<ModelMessage, { role: 'tool' }>;
type Image = Extract<ContentPart, { type: 'image' }>;

export interface PromptOptions {
  readonly version: 'v3' | 'v4';
  /** Whether a tool's result can hold an image. Otherwise the image is sent in a separate message. */
  readonly imagesInResults: boolean;
}

/** Translates a request into the AI SDK's format. */
export function toPrompt({ instructions, messages }: ModelRequest, options: PromptOptions): LanguageModelV4Prompt {
  const prompt: LanguageModelV4Prompt = [];
  if (instructions !== undefined && instructions !== '') prompt.push({ role: 'system', content: instructions });
  let results: ToolMessage[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === 'user') prompt.push(user(message.content, options));
    else if (message.role === 'assistant') prompt.push(...assistant(message.content));
    else results.push(message);
    // Put the results of one reply into one message: otherwise some providers treat the later ones as too late.
    if (results.length === 0 || messages[index + 1]?.role === 'tool') continue;
    prompt.push({ role: 'tool', content: results.map((result) => toResult(result, options)) });
    if (!options.imagesInResults) prompt.push(...shownApart(results, options));
    results = [];
  }
  return wellFormed(prompt);
}

function user(content: Content, { version }: PromptOptions): Of<'user'> {
  return {
    role: 'user',
    content: toParts(content).map((part) => (part.type === 'text' ? textPart(part) : filePart(part, version))),
  };
}

/** No provider accepts a reply without text or calls, so one that was cut off while thinking is left out. */
function assistant(content: Extract<ModelMessage, { role: 'assistant' }>['content']): Of<'assistant'>[] {
  const parts: Of<'assistant'>['content'] = [];
  // A proof uses the provider's id of its call and stands before it; the next call may have the same id.
  const proofs = new Map<string, SharedV4ProviderMetadata>();
  for (const part of content) {
    const signed = part.type === 'thinking' && part.signature ? decodeSignature(part.signature) : undefined;
    if (signed?.callId !== undefined) proofs.set(signed.callId, signed.metadata);
    else if (part.type === 'thinking' && signed !== undefined)
      parts.push({ type: 'reasoning', text: part.text, providerOptions: signed.metadata });
    else if (part.type === 'text' && part.text.trim() !== '') parts.push(textPart(part));
    else if (part.type === 'call') {
      const givenId = part.providerId ?? part.callId;
      const proof = proofs.get(givenId);
      proofs.delete(givenId);
      parts.push({
        type: 'tool-call',
        toolCallId: part.callId,
        toolName: safeName(part.tool),
        input: inputObject(part.input),
        ...(proof && { providerOptions: proof }),
      });
    }
  }
  return parts.some(({ type }) => type !== 'reasoning') ? [{ role: 'assistant', content: parts }] : [];
}

function toResult(message: ToolMessage, options: PromptOptions): ResultPart {
  const { callId, tool } = message;
  return { type: 'tool-result', toolCallId: callId, toolName: safeName(tool), output: toOutput(message, options) };
}

function toOutput({ content, isError }: ToolMessage, options: PromptOptions): ResultPart['output'] {
  const parts = toParts(content);
  const images = parts.filter((part) => part.type === 'image');
  if (images.length === 0 || !options.imagesInResults) {
    const note = images.length === 0 ? '' : '\n(Shown in the next message.)';
    return { type: isError ? 'error-text' : 'text', value: toText(content) + note };
  }
  // Only text can be marked as an error, so next to images the text says it.
  const heading = isError ? [textPart({ text: 'The call failed.' })] : [];
  const value = parts.map((part) =>
    part.type === 'text' ? textPart(part) : filePart(part, options.version, 'image-data'),
  );
  return { type: 'content', value: [...heading, ...value] };
}

function shownApart(results: readonly ToolMessage[], { version }: PromptOptions): Of<'user'>[] {
  const content = results.flatMap(({ callId, content: shown }) => {
    const images = toParts(shown).filter((part) => part.type === 'image');
    const heading = textPart({ text: `Shown by call ${callId}:` });
    return images.length === 0 ? [] : [heading, ...images.map((image) => filePart(image, version))];
  });
  return content.length === 0 ? [] : [{ role: 'user', content }];
}

function toParts(content: Content): readonly ContentPart[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

function textPart({ text }: { text: string }): { type: 'text'; text: string } {
  return { type: 'text', text };
}

type FilePart = Extract<Of<'user'>['content'][number], { type: 'file' }>;

// The two versions of the specification differ only in how they represent a file.
function filePart({ mediaType, data }: Image, version: 'v3' | 'v4', typeInV3 = 'file'): FilePart {
  if (version === 'v3') return { type: typeInV3, mediaType, data } as unknown as FilePart;
  return { type: 'file', mediaType, data: { type: 'data', data } };
}
