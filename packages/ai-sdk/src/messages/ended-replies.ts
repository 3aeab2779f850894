import type { SharedV4ProviderMetadata } from '@ai-sdk/provider';
import { isProof } from '../signature.ts';
import { type AiSdkMessage, type AiSdkPart, getParts, isProvided } from '../turn/call-sites.ts';
import { asText } from './as-json.ts';
import { sameOr } from './wire-safe.ts';

/**
 * Removes from replies that are over what providers refuse in them: calls that the provider was running when the reply
 * was cut off, thinking that nothing follows, and text without a word. A reply is over when something other than
 * results follows it: until then its provider may still return the result.
 */
export function endReplies(messages: readonly AiSdkMessage[]): readonly AiSdkMessage[] {
  const end = messages.findLastIndex(({ role }) => role !== 'tool');
  const over = messages.slice(0, Math.max(0, end));
  const parts = over.flatMap(getParts);
  const replies = messages.filter(({ role }) => role === 'assistant').flatMap(getParts);
  const answered = new Set(replies.filter(({ type }) => type === 'tool-result').map(({ toolCallId }) => toolCallId));
  const cut = parts.filter((part) => isProvided(part) && !answered.has(part.toolCallId));
  const ids = new Set(cut.map(({ toolCallId }) => toolCallId));
  const asked = parts.filter(({ type, toolCallId }) => type === 'tool-approval-request' && ids.has(toolCallId));
  // Not by the ids of calls: a call of ours may have the same.
  const gone = new Set<unknown>([...cut, ...asked.map(({ approvalId }) => approvalId)]);
  const ended = over.flatMap((message) => {
    const given = getParts(message);
    const kept = given.filter((part) => !gone.has(part) && !gone.has(part.approvalId));
    const content = sameOr(given, message.role === 'assistant' ? withoutLooseEnd(kept) : kept);
    if (content === given) return [message];
    return content.some(({ type }) => type !== 'custom') ? [{ ...message, content }] : [];
  });
  return [...ended, ...messages.slice(over.length)];
}

function withoutLooseEnd(parts: readonly AiSdkPart[]): readonly AiSdkPart[] {
  const visible = parts.filter((part) => !isBlank(part));
  const spoken = visible.findLastIndex(
    (part) => part.type !== 'reasoning' && part.type !== 'custom' && part.type !== 'tool-result' && !isProvided(part),
  );
  // OpenAI takes its own calls only together with their thinking, and not every version of the AI SDK sends them.
  if (visible.slice(spoken + 1).some(isStored)) return visible.slice(0, spoken + 1);
  return visible.slice(0, visible.findLastIndex(({ type }) => type !== 'reasoning') + 1);
}

/** Whether this is thinking that OpenAI knows by an id. */
function isStored({ type, providerOptions }: AiSdkPart): boolean {
  const fields = Object.values((providerOptions ?? {}) as SharedV4ProviderMetadata);
  return type === 'reasoning' && fields.some((one) => 'itemId' in one);
}

function isBlank({ type, text, providerOptions }: AiSdkPart): boolean {
  return type === 'text' && asText(text).trim() === '' && !isProof((providerOptions ?? {}) as SharedV4ProviderMetadata);
}
