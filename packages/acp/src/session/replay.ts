import type { Message, Tool } from '@whoa/core';
import { announceCall, endCall } from '../calls.ts';
import type { Update } from '../updates.ts';

type ToolMessage = Extract<Message, { role: 'tool' }>;

/**
 * Converts a history into the updates that a connected client would have received. A call without a result is running.
 */
export function* replay(
  messages: readonly Message[],
  context: { readonly cwd: string; readonly tools: readonly Tool[] },
): Generator<Update> {
  const results = new Map<string, ToolMessage>();
  for (const message of messages) if (message.role === 'tool') results.set(message.callId, message);
  for (const [index, message] of messages.entries()) {
    const messageId = `m${index}`;
    if (message.role === 'user' && !message.isNotice) yield { type: 'user', messageId, content: message.content };
    if (message.role !== 'assistant') continue;
    for (const part of message.content) {
      if (part.type === 'text') yield { type: 'text', messageId, text: part.text };
      else if (part.type === 'thinking') yield { type: 'thought', messageId, text: part.text };
      else {
        const result = results.get(part.callId);
        const announced = { ...announceCall(part, context), isNew: true };
        yield result === undefined ? { ...announced, status: 'in_progress' } : announced;
        if (result !== undefined) yield endCall(result, context);
      }
    }
  }
}
