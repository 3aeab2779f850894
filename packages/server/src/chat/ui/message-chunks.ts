import type { UIMessage, UIMessageChunk } from 'ai';
import { asJson, type CallPart, getToolName, isCallPart } from './call-parts.ts';

/** Returns the chunks that form a stored message again. */
export function toChunks({ parts, metadata }: Omit<UIMessage, 'id' | 'role'>): UIMessageChunk[] {
  const chunks: UIMessageChunk[] =
    metadata === undefined ? [] : [{ type: 'message-metadata', messageMetadata: metadata }];
  let isInStep = false;
  for (const [index, part] of parts.entries()) {
    if (part.type === 'step-start') {
      chunks.push(...(isInStep ? [{ type: 'finish-step' } as const] : []), { type: 'start-step' });
      isInStep = true;
    } else if (part.type === 'text' || part.type === 'reasoning') {
      const { id = `${index}` } = part as { id?: string };
      const more = part.providerMetadata && { providerMetadata: part.providerMetadata };
      chunks.push({ type: `${part.type}-start`, id, ...more }, { type: `${part.type}-delta`, id, delta: part.text });
      chunks.push({ type: `${part.type}-end`, id });
    } else if (isCallPart(part)) chunks.push(...callChunks(part));
    // The other parts are their own chunks.
    else chunks.push(part as UIMessageChunk);
  }
  return isInStep ? [...chunks, { type: 'finish-step' }] : chunks;
}

/** Returns the message that chunks form, or continue. */
export async function formMessage(
  id: string,
  chunks: readonly UIMessageChunk[],
  continued?: UIMessage,
): Promise<UIMessage> {
  const { readUIMessageStream } = await import('ai');
  let message = continued ?? { id, role: 'assistant', parts: [] };
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      controller.enqueue({ type: 'start', messageId: id });
      // Copies: the SDK makes data chunks parts of the message, and changes them.
      for (const chunk of chunks) controller.enqueue({ ...chunk, ...(chunk.type === 'start' && { messageId: id }) });
      controller.close();
    },
  });
  const given = continued && { message: structuredClone(continued) };
  for await (const state of readUIMessageStream({ stream, ...given })) message = state;
  return message;
}

/** Pages run a tool when its input becomes available, so a call that has ended gets its input in another way. */
function callChunks(part: CallPart): UIMessageChunk[] {
  const { toolCallId, input, title, toolMetadata, providerExecuted, callProviderMetadata: providerMetadata } = part;
  const call = asJson({
    toolCallId,
    toolName: getToolName(part),
    dynamic: part.type === 'dynamic-tool' || undefined,
    title,
    toolMetadata,
    providerExecuted,
    providerMetadata,
  }) as { toolCallId: string; toolName: string };
  const more = 'resultProviderMetadata' in part && { providerMetadata: part.resultProviderMetadata! };
  const begin: UIMessageChunk = { type: 'tool-input-start', ...call };
  if (part.state === 'output-error') {
    const { errorText } = part;
    return [begin, ...approvalChunks(part), { type: 'tool-input-error', ...call, ...more, input, errorText }];
  }
  if (part.state === 'output-available') {
    const { output, preliminary } = part;
    const inputTextDelta = JSON.stringify(input ?? null);
    const isPreliminary = preliminary && { preliminary };
    const end: UIMessageChunk = { type: 'tool-output-available', toolCallId, output, ...isPreliminary, ...more };
    return [begin, { type: 'tool-input-delta', toolCallId, inputTextDelta }, ...approvalChunks(part), end];
  }
  const open = [{ type: 'tool-input-available', ...call, input } as const, ...approvalChunks(part)];
  return part.state === 'output-denied' ? [...open, { type: 'tool-output-denied', toolCallId }] : open;
}

function approvalChunks({ toolCallId, approval }: CallPart): UIMessageChunk[] {
  if (approval === undefined) return [];
  const { id: approvalId, approved, descriptor, requestReason, reason, ...asked } = approval as Record<string, unknown>;
  const question = { ...asked, toolCallId, approvalId, approvalDescriptor: descriptor, reason: requestReason };
  const chunks = [{ type: 'tool-approval-request', ...question }];
  if (approved === undefined) return asJson(chunks) as unknown as UIMessageChunk[];
  const answer = { type: 'tool-approval-response', approvalId, approved, reason };
  return asJson([...chunks, answer]) as unknown as UIMessageChunk[];
}
