import { isObject, SettingsError } from '../../stop/settings.ts';
import { boundContent } from '../../tool/bounds.ts';
import type { Content } from '../../tool/result.ts';
import type { InputSchema } from '../../tool/schema.ts';
import type { Tool } from '../../tool/tool.ts';
import type { ModelMessage, ModelTool } from '../reply/model.ts';
import { CallIds } from './call-ids.ts';
import type { AssistantMessage, AssistantPart, Message, ToolMessage } from './message.ts';

/**
 * Prepares a history for a model. All histories sent to models must pass through here. It drops `details`, limits
 * content, and leaves only what every provider accepts: each call is followed by exactly one result, ids are safe and
 * unique, names are valid, thinking is signed, no character is split, nothing is empty.
 *
 * @returns The messages to send.
 */
export function prepareMessages(history: readonly Message[]): ModelMessage[] {
  const results = findResults(history);
  const ids = new CallIds();
  const prepared: ModelMessage[] = [];
  for (const message of history) {
    if (message.role === 'user') prepared.push({ role: 'user', content: prepareContent(message.content) });
    if (message.role !== 'assistant') continue;
    const parts = replayable(message);
    if (parts.length === 0) continue;
    const content = parts.map((part) => preparePart(part, ids));
    prepared.push({ role: 'assistant', content });
    // Put results directly behind their calls, in the order of the calls, wherever they were before.
    for (const [at, part] of content.entries()) {
      if (part.type === 'call') prepared.push(prepareResult(part, results.get(parts[at]!)));
    }
  }
  return prepared;
}

function replayable(message: AssistantMessage): AssistantPart[] {
  const parts = message.content.filter((part) => {
    if (part.type === 'text') return part.text.trim() !== '';
    if (part.type === 'thinking') return part.signature?.isWellFormed() === true;
    return true;
  });
  // Providers refuse a reply that ends in thinking, and a reply that was cut off may end so.
  const last = parts.findLastIndex((part) => part.type !== 'thinking');
  return parts.slice(0, last + 1);
}

/** Returns the same object if it can be sent unchanged, as most can: long histories are prepared for every turn. */
function preparePart(part: AssistantPart, ids: CallIds): AssistantPart {
  if (part.type !== 'call') return part.text.isWellFormed() ? part : { ...part, text: part.text.toWellFormed() };
  const { input } = part;
  const callId = ids.take(part.callId);
  const tool = legalName(part.tool);
  if (callId === part.callId && tool === part.tool && isWhole(input)) return part;
  const providerId = callId === part.callId ? part.providerId : (part.providerId ?? part.callId);
  return { ...part, callId, ...(providerId !== undefined && { providerId }), tool, input: madeWhole(input) };
}

/** Returns the nearest name that every provider accepts: models invent names, and providers refuse them. */
function legalName(name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/.test(name)) return name;
  return `_${name.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`.slice(0, 64);
}

/** Whether no text in it has half a character: a cut may have split an emoji. */
function isWhole(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, one]) => key.isWellFormed() && isWhole(one));
}

function madeWhole(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(madeWhole);
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key.toWellFormed(), madeWhole(one)]));
}

type CallPart = AssistantPart & { type: 'call' };

/** Matches results with calls: the first result that follows the call, or one from elsewhere. Ids may recur. */
function findResults(history: readonly Message[]): ReadonlyMap<AssistantPart, ToolMessage> {
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

/** A call without a result can only come from a history that Whoa did not write: its end is unknown. */
const UNKNOWN = { content: 'Outcome unknown: no result was recorded.', isError: true };

function prepareResult({ callId, tool }: CallPart, result: ToolMessage | undefined): ModelMessage {
  const { content, isError } = result ?? UNKNOWN;
  return { role: 'tool', callId, tool, content: prepareContent(content), isError };
}

const NOTHING_SAID = '(nothing)';

function prepareContent(content: Content): Content {
  if (typeof content === 'string') return content.trim() === '' ? NOTHING_SAID : boundContent(content.toWellFormed());
  const parts = content
    .filter((part) => part.type !== 'text' || part.text.trim() !== '')
    .map((part) => (part.type === 'text' ? { ...part, text: part.text.toWellFormed() } : part));
  return parts.length === 0 ? NOTHING_SAID : boundContent(parts);
}

/** Describes the available tools for a model. */
export function describeTools(tools: readonly Tool[]): ModelTool[] {
  return tools.map(({ name, description, inputSchema, inputJsonSchema }) => {
    const schema = inputJsonSchema ?? describeSchema(name, inputSchema);
    return { name, description: description.toWellFormed(), inputJsonSchema: schema };
  });
}

function describeSchema(name: string, schema: InputSchema): Record<string, unknown> {
  let failure: unknown;
  try {
    const described: unknown = schema['~standard'].jsonSchema?.input({ target: 'draft-07' });
    if (isObject(described)) return described as Record<string, unknown>;
  } catch (error) {
    failure = error;
  }
  const what = failure === undefined ? 'cannot describe itself to a model' : 'failed to describe itself';
  throw new SettingsError('tools', `the schema of '${name}' ${what}; give the tool an inputJsonSchema`, failure);
}
