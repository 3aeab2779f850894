import { settings } from '@whoa/core/internal';
import { asJson, asText } from '../messages/as-json.ts';

/** A message of the AI SDK's `ModelMessage` kind, as far as calls are concerned. */
export interface AiSdkMessage {
  readonly role: string;
  readonly content: unknown;
}

/** A part of such a message. */
export interface AiSdkPart {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly toolCallId?: unknown;
  readonly toolName?: unknown;
  readonly input?: unknown;
  readonly providerExecuted?: unknown;
  readonly approvalId?: unknown;
  readonly output?: { readonly type: string; readonly value?: unknown };
}

/** Where in a conversation a call was asked for. It stays true when results are added or call ids are changed. */
export interface CallPosition {
  /** How many messages of the user, and how many calls, stand before the reply that asks for it. */
  readonly users: number;
  readonly calls: number;
  /** What the user said last. */
  readonly said: string;
}

/** One call of a history that is run in this process. */
export interface CallSite {
  readonly part: AiSdkPart;
  readonly message: AiSdkMessage;
  readonly toolCallId: string;
  readonly tool: string;
  readonly input: string | undefined;
  readonly position: CallPosition;
  /** Counts calls of one reply that look the same. */
  readonly twin: number;
}

/** The calls of a history, in order. */
export function callSitesOf(messages: readonly AiSdkMessage[]): CallSite[] {
  const sites: CallSite[] = [];
  let position: CallPosition = { users: 0, calls: 0, said: '' };
  for (const message of messages) {
    if (message.role === 'user') position = { ...position, users: position.users + 1, said: textIn(message) };
    if (message.role !== 'assistant') continue;
    const found: CallSite[] = [];
    for (const part of callsIn(message)) {
      const about = {
        toolCallId: asText(part.toolCallId),
        tool: asText(part.toolName),
        input: fingerprint(part.input),
      };
      const twin = found.filter((site) => site.toolCallId === about.toolCallId && isSameWork(site, about)).length;
      found.push({ part, message, ...about, position, twin });
    }
    sites.push(...found);
    position = { ...position, calls: position.calls + found.length };
  }
  return sites;
}

/** Where the next reply to these messages stands. */
export function positionAfter(messages: readonly AiSdkMessage[]): CallPosition {
  const users = messages.filter(({ role }) => role === 'user');
  const calls = messages.reduce((sum, message) => sum + callsIn(message).length, 0);
  return { users: users.length, calls, said: users.length === 0 ? '' : textIn(users.at(-1)!) };
}

export function isSamePosition(a: CallPosition, b: CallPosition): boolean {
  return a.users === b.users && a.calls === b.calls && a.said === b.said;
}

interface Work {
  readonly tool: string;
  readonly input: string | undefined;
}

/** Whether two calls ask for the same. An input that one of them does not know says nothing. */
export function isSameWork(a: Work, b: Work): boolean {
  return a.tool === b.tool && (a.input === undefined || b.input === undefined || a.input === b.input);
}

/** How much of an input or a message is kept to know it again. */
const MAX_KEPT_CHARACTERS = 2_000;

/** A short text that is the same for the same input, also after a database has reordered its fields. */
export function fingerprint(input: unknown): string | undefined {
  return input === undefined ? undefined : shortened(asJson(sorted(input)));
}

function shortened(text: string): string {
  return text.length <= MAX_KEPT_CHARACTERS ? text : `${text.slice(0, MAX_KEPT_CHARACTERS)}… ${text.length}`;
}

function sorted(value: unknown): unknown {
  try {
    return JSON.parse(asJson(value), (_name, item: unknown) =>
      typeof item === 'object' && item !== null && !Array.isArray(item)
        ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
        : item,
    );
  } catch {
    return value;
  }
}

export function partsOf({ content }: AiSdkMessage): readonly AiSdkPart[] {
  return settings.isList(content) ? (content as readonly AiSdkPart[]) : [];
}

/** The calls in a reply that need a result from here. */
function callsIn(message: AiSdkMessage): readonly AiSdkPart[] {
  if (message.role !== 'assistant') return [];
  const parts = partsOf(message);
  const answered = new Set(parts.flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId] : [])));
  return parts.filter(
    ({ type, toolCallId, providerExecuted }) =>
      type === 'tool-call' && providerExecuted !== true && !answered.has(toolCallId),
  );
}

function textIn(message: AiSdkMessage): string {
  if (typeof message.content === 'string') return shortened(message.content);
  return shortened(
    partsOf(message)
      .map(({ text }) => (typeof text === 'string' ? text : ''))
      .join(''),
  );
}
