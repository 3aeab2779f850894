import { boundContent } from '../tool/bounds.ts';
import type { Content } from '../tool/result.ts';
import type { Tool } from '../tool/tool.ts';
import type { AssistantMessage, AssistantPart, Message, ToolMessage } from './message.ts';
import type { ModelMessage, ModelTool } from './model.ts';

/**
 * The only way from a history to a model. It drops `details`, bounds content, and leaves only what every provider
 * accepts, whatever the history went through: each call is followed by exactly one result, thinking is signed, nothing
 * is empty.
 */
export function prepareMessages(history: readonly Message[]): ModelMessage[] {
  const results = resultsOf(history);
  const prepared: ModelMessage[] = [];
  for (const message of history) {
    if (message.role === 'user') prepared.push({ role: 'user', content: prepareContent(message.content) });
    if (message.role !== 'assistant') continue;
    const content = prepareReply(message);
    if (content.length === 0) continue;
    prepared.push({ role: 'assistant', content });
    // Results stand directly behind their calls, in the order of the calls, wherever they stood before.
    for (const part of content) if (part.type === 'call') prepared.push(prepareResult(part, results.get(part)));
  }
  return prepared;
}

function prepareReply(message: AssistantMessage): AssistantPart[] {
  const parts = message.content.filter((part) => {
    if (part.type === 'text') return part.text.trim() !== '';
    if (part.type === 'thinking') return part.signature !== undefined;
    return true;
  });
  // Providers refuse a reply that ends in thinking; a reply that was cut off may.
  const last = parts.findLastIndex((part) => part.type !== 'thinking');
  return parts.slice(0, last + 1);
}

type CallPart = AssistantPart & { type: 'call' };

/** Which result belongs to which call: the first that follows it, or one that stood elsewhere. Ids may come again. */
function resultsOf(history: readonly Message[]): ReadonlyMap<AssistantPart, ToolMessage> {
  const results = new Map<AssistantPart, ToolMessage>();
  const open = new Map<string, CallPart>();
  const strays = new Map<string, ToolMessage>();
  for (const message of history) {
    if (message.role === 'assistant') {
      for (const part of message.content) if (part.type === 'call') open.set(part.callId, part);
    } else if (message.role === 'tool') {
      const call = open.get(message.callId);
      if (call !== undefined) results.set(call, message);
      else if (!strays.has(message.callId)) strays.set(message.callId, message);
      open.delete(message.callId);
    }
  }
  for (const [callId, call] of open) {
    const stray = strays.get(callId);
    if (stray !== undefined) results.set(call, stray);
  }
  return results;
}

function prepareResult(call: CallPart, result: ToolMessage | undefined): ModelMessage {
  const { callId, tool } = call;
  // A call without a result can only come from a history that was not ours: nobody knows what became of it.
  if (result === undefined) {
    return { role: 'tool', callId, tool, content: 'Outcome unknown: no result was recorded.', isError: true };
  }
  return { role: 'tool', callId, tool, content: prepareContent(result.content), isError: result.isError };
}

const NOTHING_SAID = '(nothing)';

function prepareContent(content: Content): Content {
  if (typeof content === 'string') return content.trim() === '' ? NOTHING_SAID : boundContent(content);
  const parts = content.filter((part) => part.type !== 'text' || part.text.trim() !== '');
  return parts.length === 0 ? NOTHING_SAID : boundContent(parts);
}

/** What a model is told of the tools it may use. */
export function describeTools(tools: readonly Tool[]): ModelTool[] {
  return tools.map(({ name, description, input, inputJsonSchema }) => {
    const schema = inputJsonSchema ?? input['~standard'].jsonSchema?.input({ target: 'draft-07' });
    if (schema === undefined) {
      throw new TypeError(
        `tools: the schema of '${name}' cannot describe itself to a model; give the tool an inputJsonSchema`,
      );
    }
    return { name, description, inputJsonSchema: schema };
  });
}
