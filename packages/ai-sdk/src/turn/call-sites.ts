import { settings } from '@whoa/core/internal';
import { asJson, asText } from '../messages/as-json.ts';
import { inputObject } from '../messages/wire-safe.ts';

/** The part of the AI SDK's `ModelMessage` that concerns calls. */
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
  readonly providerOptions?: unknown;
  readonly approvalId?: unknown;
  readonly isAutomatic?: unknown;
  readonly approved?: unknown;
  readonly reason?: unknown;
  readonly output?: { readonly type: string; readonly value?: unknown };
}

/** Where in a conversation a call was requested. Adding results or changing call ids does not change it. */
export interface CallPosition {
  /** How many user messages, and how many calls, come before the reply with the call. */
  readonly users: number;
  readonly calls: number;
  /** The text of the last user message. */
  readonly precedingText: string;
}

/** One call of a history that runs in this process. */
export interface CallSite extends Omit<CallTrace, 'approvalId'> {
  readonly part: AiSdkPart;
  readonly message: AiSdkMessage;
  readonly toolCallId: string;
  readonly tool: string;
  readonly position: CallPosition;
  /** Set if it needs an approval. */
  readonly approval?: CallApproval;
}

/** What distinguishes a call from others with the same `toolCallId`, if the loop provides it. */
export interface CallTrace {
  readonly input: string | undefined;
  readonly position: CallPosition | undefined;
  /** Counts identical calls of one reply. */
  readonly occurrence: number;
  /** The approval that allowed it. It allows one call, once. */
  readonly approvalId?: unknown;
}

/** The request for an approval, and its answer. A loop looks for answers in the last message only. */
interface CallApproval {
  readonly request: AiSdkPart;
  readonly answer?: AiSdkPart;
  readonly isLast?: boolean;
}

/** Returns the calls of a history, in order. */
export function findCallSites(messages: readonly AiSdkMessage[]): CallSite[] {
  const answers = new Map<unknown, Omit<CallApproval, 'request'>>();
  for (const message of messages)
    for (const part of message.role === 'tool' ? getParts(message) : [])
      if (part.type === 'tool-approval-response')
        answers.set(part.approvalId, { answer: part, isLast: message === messages.at(-1) });
  const sites: CallSite[] = [];
  let position = START;
  for (const message of messages) {
    const found: CallSite[] = [];
    const requests = getParts(message).filter(({ type }) => type === 'tool-approval-request');
    for (const part of findCalls(message)) {
      const toolCallId = asText(part.toolCallId);
      const work = { tool: asText(part.toolName), input: fingerprint(part.input) };
      const occurrence = found.filter((site) => site.toolCallId === toolCallId && isSameWork(site, work)).length;
      // Ids may recur, so each request belongs to one call.
      const asked = requests.findIndex((request) => request.toolCallId === part.toolCallId);
      const request = asked === -1 ? undefined : requests.splice(asked, 1)[0];
      const approval = request && { request, ...answers.get(request.approvalId) };
      found.push({ part, message, toolCallId, ...work, position, occurrence, ...(approval && { approval }) });
    }
    sites.push(...found);
    position = advance(position, message);
  }
  return sites;
}

export function toTrace({ input, position, occurrence, approval }: CallSite): CallTrace {
  return { input, position, occurrence, ...(approval && { approvalId: approval.request.approvalId }) };
}

/** Returns the call that the last message allows a loop to run, if it is this one. Providers use ids again. */
export function findApprovedCall(
  messages: readonly AiSdkMessage[],
  { toolCallId, ...work }: Work & { readonly toolCallId: string },
): CallSite | undefined {
  const last = messages.at(-1);
  if (last?.role !== 'tool' || !getParts(last).some(({ type }) => type === 'tool-approval-response')) return undefined;
  return findCallSites(messages).findLast(
    (site) => site.toolCallId === toolCallId && site.approval?.isLast && isSameWork(site, work),
  );
}

const START: CallPosition = { users: 0, calls: 0, precedingText: '' };

function advance(position: CallPosition, message: AiSdkMessage): CallPosition {
  if (message.role === 'user') return { ...position, users: position.users + 1, precedingText: toText(message) };
  return { ...position, calls: position.calls + findCalls(message).length };
}

/** Returns the position of the next reply to these messages. */
export function positionAfter(messages: readonly AiSdkMessage[]): CallPosition {
  return messages.reduce(advance, START);
}

export function isSamePosition(a: CallPosition, b: CallPosition): boolean {
  return a.users === b.users && a.calls === b.calls && a.precedingText === b.precedingText;
}

interface Work {
  readonly tool: string;
  readonly input: string | undefined;
}

/** Whether two calls request the same work. An unknown input matches any. */
export function isSameWork(a: Work, b: Work): boolean {
  return a.tool === b.tool && (a.input === undefined || b.input === undefined || a.input === b.input);
}

/** How much of an input or a message is kept to recognize it. */
const MAX_KEPT_CHARACTERS = 2_000;

/** A short string that is the same for the same input, even after a database has reordered its fields or it was closed. */
export function fingerprint(input: unknown): string | undefined {
  return input === undefined ? undefined : shortened(asJson(sorted(inputObject(input))));
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

export function getParts({ content }: AiSdkMessage): readonly AiSdkPart[] {
  return settings.isList(content) ? (content as readonly AiSdkPart[]) : [];
}

/** Returns the calls in a reply that need a local result. */
function findCalls(message: AiSdkMessage): readonly AiSdkPart[] {
  if (message.role !== 'assistant') return [];
  const parts = getParts(message);
  const calls = parts.filter(({ type }) => type === 'tool-call');
  // A result in a reply belongs to the call that the provider ran, even if another call has the same id.
  const ran = new Set(calls.filter(isProvided).map(({ toolCallId }) => toolCallId));
  const results = parts.filter(({ type, toolCallId }) => type === 'tool-result' && !ran.has(toolCallId));
  const answered = new Set(results.map(({ toolCallId }) => toolCallId));
  return calls.filter((part) => !isProvided(part) && !answered.has(part.toolCallId));
}

/** Whether the provider runs this call. */
export function isProvided({ type, providerExecuted }: AiSdkPart): boolean {
  return type === 'tool-call' && providerExecuted === true;
}

function toText(message: AiSdkMessage): string {
  const texts = getParts(message).map(({ text }) => (typeof text === 'string' ? text : ''));
  return shortened(typeof message.content === 'string' ? message.content : texts.join(''));
}
