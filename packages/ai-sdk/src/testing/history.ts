import { toText } from '@whoa/core';
import type { ModelMessage } from '@whoa/core/model';
import { decodeSignature } from '../signature.ts';
import type { ProviderRefusal, StrictOptions } from './strict/strict.ts';
import { validateAnthropic } from './strict/strict-anthropic.ts';
import { validateChat } from './strict/strict-chat.ts';
import { validateResponses } from './strict/strict-responses.ts';
import type { WireFormat } from './wire/wire.ts';

/** Finds what each vendor would refuse in the body of a request. Pure: no server is needed. */
export const strictValidators: Readonly<
  Record<WireFormat, (body: unknown, options?: StrictOptions) => ProviderRefusal | undefined>
> = {
  chat: validateChat,
  responses: validateResponses,
  anthropic: validateAnthropic,
};

type Blocks = Record<string, unknown>[];

/**
 * Checks a history against the rules of the three vendors.
 *
 * @returns What each vendor would refuse; empty when all accept it.
 */
export function findRefusals(messages: readonly ModelMessage[]): (ProviderRefusal & { readonly format: WireFormat })[] {
  const bodies: Record<WireFormat, unknown> = {
    chat: { messages: messages.map(chatMessage) },
    responses: { input: messages.flatMap(responsesItems) },
    anthropic: { messages: anthropicMessages(messages) },
  };
  return (['chat', 'responses', 'anthropic'] as const).flatMap((format) => {
    const refusal = strictValidators[format](bodies[format]);
    return refusal === undefined ? [] : [{ format, ...refusal }];
  });
}

function chatMessage(message: ModelMessage): unknown {
  if (message.role === 'user') return { role: 'user', content: toText(message.content) };
  if (message.role === 'tool') return { role: 'tool', tool_call_id: message.callId, content: toText(message.content) };
  const calls = message.content.filter((part) => part.type === 'call');
  const text = message.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const tool_calls = calls.map(({ callId, tool, input }) => ({
    id: callId,
    function: { name: tool, arguments: JSON.stringify(input) },
  }));
  return { role: 'assistant', content: text === '' ? null : text, ...(calls.length > 0 && { tool_calls }) };
}

function responsesItems(message: ModelMessage): Blocks {
  if (message.role === 'user') return [{ role: 'user', content: toText(message.content) }];
  if (message.role === 'tool')
    return [{ type: 'function_call_output', call_id: message.callId, output: toText(message.content) }];
  return message.content.flatMap((part): Blocks => {
    if (part.type === 'text') return [{ role: 'assistant', content: part.text }];
    if (part.type === 'call')
      return [{ type: 'function_call', call_id: part.callId, name: part.tool, arguments: JSON.stringify(part.input) }];
    return isOfCall(part.signature) ? [] : [{ type: 'reasoning', encrypted_content: part.signature }];
  });
}

function anthropicMessages(messages: readonly ModelMessage[]): Blocks {
  const merged: { role: string; content: Blocks }[] = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const blocks = anthropicBlocks(message);
    const last = merged.at(-1);
    // This vendor merges neighbouring messages of the same role, but an empty one stays an empty one.
    if (last?.role === role && blocks.length > 0 && last.content.length > 0) last.content.push(...blocks);
    else merged.push({ role, content: blocks });
  }
  return merged;
}

function anthropicBlocks(message: ModelMessage): Blocks {
  if (message.role === 'user') return [{ type: 'text', text: toText(message.content) }];
  if (message.role === 'tool')
    return [{ type: 'tool_result', tool_use_id: message.callId, content: toText(message.content) }];
  return message.content.flatMap((part): Blocks => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }];
    if (part.type === 'call') return [{ type: 'tool_use', id: part.callId, name: part.tool, input: part.input }];
    return isOfCall(part.signature) ? [] : [{ type: 'thinking', thinking: part.text, signature: part.signature }];
  });
}

function isOfCall(signature: string | undefined): boolean {
  return signature !== undefined && decodeSignature(signature)?.callId !== undefined;
}
