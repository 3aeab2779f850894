import type { UserMessage } from '@whoa/core/embed';
import type { UIMessage } from 'ai';
import { type CallPart, getToolName, isCallPart } from './ui/call-parts.ts';

/** The part of a user's message that lists the calls of its replaced replies. */
const REPLACED = 'data-replaced-calls';

/** A call that may have had an effect before its reply was replaced. */
export interface ReplacedCall {
  readonly tool: string;
  readonly input: string;
  readonly end: string;
}

type StoredMessage = Pick<UIMessage, 'role'> & Partial<Pick<UIMessage, 'parts'>>;

const INTRODUCTION = [
  'Note of the server: an earlier reply was replaced or removed, but these of its calls were not undone.',
  'Do not repeat them unless the user asks for it.',
].join('\n');
const MAX_CALLS = 20;
const MAX_CHARACTERS = 300;

/**
 * Returns a user's message with the calls of everything that it replaces. Their effects stay, so the model and the page must
 * know of them. Only the server writes this part.
 */
export function withReplacedCalls(message: UIMessage, calls: readonly ReplacedCall[]): UIMessage {
  const parts = message.parts.filter(({ type }) => type !== REPLACED);
  const data = calls.slice(-MAX_CALLS);
  return { ...message, parts: data.length === 0 ? parts : [...parts, { type: REPLACED, data }] };
}

/** Returns a user's message without the parts that only the server writes. */
export function withoutServerParts(message: UIMessage): UIMessage {
  return { ...message, parts: message.parts.filter(({ type }) => type !== REPLACED && type !== 'data-stop-report') };
}

/** Returns the calls of messages that may have had an effect, with those of the replies that were replaced before. */
export function findReplacedCalls(removed: readonly StoredMessage[]): readonly ReplacedCall[] {
  return removed.flatMap(({ role, parts = [] }) =>
    role === 'user'
      ? parts.flatMap((part) => (part.type === REPLACED ? (part.data as readonly ReplacedCall[]) : []))
      : parts.filter(isCallPart).flatMap((part) => (isWithoutEffect(part) ? [] : [describe(part)])),
  );
}

/** Returns the message in which an agent's model gets the calls. */
export function toNotice(calls: readonly ReplacedCall[]): UserMessage {
  const texts = [INTRODUCTION, ...calls.slice(-MAX_CALLS).map((call) => JSON.stringify(call))];
  return { role: 'user', isNotice: true, content: texts.map((text) => ({ type: 'text', text })) };
}

/** Returns the calls of such a message; none of other notices. */
export function readNotice({ content }: UserMessage): readonly ReplacedCall[] {
  const texts = typeof content === 'string' ? [] : content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  return texts[0] === INTRODUCTION ? texts.slice(1).map((text) => JSON.parse(text) as ReplacedCall) : [];
}

/** Returns the words in which a model gets the part; `undefined` for other parts. */
export function toNote({
  type,
  data,
}: {
  readonly type: string;
  readonly data: unknown;
}): { readonly type: 'text'; readonly text: string } | undefined {
  if (type !== REPLACED) return undefined;
  const calls = (data as readonly ReplacedCall[]).map(({ tool, input, end }) => `- ${tool}(${input}): ${end}`);
  return { type: 'text', text: [INTRODUCTION, ...calls].join('\n') };
}

/** A person said no, or no one said yes before it was stopped. */
export function isWithoutEffect(part: CallPart): boolean {
  if (part.state === 'output-error') return part.errorText.startsWith('Not started');
  return part.state === 'approval-requested' || part.state === 'output-denied' || part.approval?.approved === false;
}

function describe(part: CallPart): ReplacedCall {
  const end = part.state === 'output-available' ? `finished: ${toText(part.output)}` : part.errorText;
  return {
    tool: getToolName(part),
    input: toText(part.input),
    end: end === undefined ? 'Outcome unknown: it may have taken effect.' : cut(end),
  };
}

const toText = (value: unknown): string => cut(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

const cut = (text: string): string =>
  text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS).toWellFormed()}…` : text;
