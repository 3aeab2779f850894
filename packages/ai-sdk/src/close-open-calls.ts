import { explain } from '@whoa/core';
import { asJson, asText } from './as-json.ts';
import type { CallLedger, CallRecord } from './call-ledger.ts';

/** A message of the AI SDK's `ModelMessage` kind, as far as calls are concerned. */
export interface AiSdkMessage {
  readonly role: string;
  readonly content: unknown;
}

interface Part {
  readonly type?: unknown;
  readonly toolCallId?: unknown;
  readonly toolName?: unknown;
  readonly providerExecuted?: unknown;
  readonly approvalId?: unknown;
  readonly output?: { readonly type: string; readonly value?: unknown };
}

type Output =
  | { readonly type: 'text' | 'error-text'; readonly value: string }
  | { readonly type: 'json'; readonly value: unknown };

/**
 * Makes a history valid again after a run was stopped: every call gets exactly one result, right after it. Calls that
 * have none get a truthful one: what the ledger knows of them, or that nobody knows. So do calls that were stopped and
 * whose result says no more than that something went wrong. Results that answer no call, and second ones, are dropped.
 * Returns new messages; valid ones come back as they were.
 *
 * ```ts
 * await calls.waitForQuiet();
 * messages = closeOpenCalls(messages, calls);
 * ```
 */
export function closeOpenCalls<Message extends AiSdkMessage>(
  messages: readonly Message[],
  ledger?: CallLedger,
): Message[] {
  const results = firstResults(messages);
  const closed: Message[] = [];
  for (let index = 0; index < messages.length; ) {
    const message = messages[index++]!;
    // Where a result belongs is decided by its call; one that stands alone here belongs nowhere.
    if (message.role === 'tool') {
      closed.push(...keeping(message, () => false));
      continue;
    }
    closed.push(message);
    const open = callsOf(message);
    if (open.size === 0) continue;
    const group: Message[] = [];
    for (let next = messages[index]; next?.role === 'tool'; next = messages[++index]) {
      group.push(...keeping(next, (part) => open.delete(String(part.toolCallId))));
    }
    forgetApproved(message, group, open);
    const missing = [...open].map(([callId, tool]) => results.get(callId) ?? resultFor({ callId, tool }, ledger));
    closed.push(...withResults(group, missing));
  }
  return ledger === undefined ? closed : closed.map((message) => truthful(message, ledger));
}

function partsOf({ content }: AiSdkMessage): readonly Part[] {
  return Array.isArray(content) ? (content as readonly Part[]) : [];
}

/** The calls in a reply that need a result from here, by id. */
function callsOf(message: AiSdkMessage): Map<string, string> {
  if (message.role !== 'assistant') return new Map();
  const parts = partsOf(message);
  const calls = parts.filter(({ type, providerExecuted }) => type === 'tool-call' && providerExecuted !== true);
  const open = new Map(calls.map(({ toolCallId, toolName }) => [String(toolCallId), String(toolName)]));
  for (const { type, toolCallId } of parts) if (type === 'tool-result') open.delete(String(toolCallId));
  return open;
}

/** Results by call, wherever they stand after it: one that came too late in the list is moved to its place. */
function firstResults(messages: readonly AiSdkMessage[]): Map<string, Part> {
  const called = new Set<string>();
  const results = new Map<string, Part>();
  for (const message of messages) {
    for (const id of callsOf(message).keys()) called.add(id);
    if (message.role !== 'tool') continue;
    for (const part of partsOf(message)) {
      const id = String(part.toolCallId);
      if (part.type === 'tool-result' && called.has(id) && !results.has(id)) results.set(id, part);
    }
  }
  return results;
}

/** A tool message with the results that are wanted, and everything in it that is no result. None if nothing is left. */
function keeping<Message extends AiSdkMessage>(message: Message, isWanted: (result: Part) => boolean): Message[] {
  const parts = partsOf(message);
  const kept = parts.filter((part) => part.type !== 'tool-result' || isWanted(part));
  if (kept.length === parts.length) return [message];
  return kept.length === 0 ? [] : [{ ...message, content: kept }];
}

/** A call that somebody has answered the approval of is not open: the loop runs or refuses it next. */
function forgetApproved(message: AiSdkMessage, group: readonly AiSdkMessage[], open: Map<string, string>): void {
  const answers = new Set(
    group.flatMap(partsOf).flatMap(({ type, approvalId }) => (type === 'tool-approval-response' ? [approvalId] : [])),
  );
  for (const { type, approvalId, toolCallId } of partsOf(message)) {
    if (type === 'tool-approval-request' && answers.has(approvalId)) open.delete(String(toolCallId));
  }
}

function withResults<Message extends AiSdkMessage>(group: readonly Message[], results: readonly Part[]): Message[] {
  if (results.length === 0) return [...group];
  const last = group.at(-1);
  if (last === undefined) return [{ role: 'tool', content: results } as AiSdkMessage as Message];
  return [...group.slice(0, -1), { ...last, content: [...partsOf(last), ...results] }];
}

const STOPPED: ReadonlySet<CallRecord['state']> = new Set(['interrupted', 'not-started', 'unknown']);

/** A loop turns the end of a stopped call into some error, and the AI SDK's UI stream hides its text. */
function truthful<Message extends AiSdkMessage>(message: Message, ledger: CallLedger): Message {
  if (message.role !== 'tool') return message;
  const before = partsOf(message);
  const after = before.map((part) => {
    const record = part.type === 'tool-result' ? ledger.find(String(part.toolCallId)) : undefined;
    if (record === undefined || !STOPPED.has(record.state) || !part.output?.type.startsWith('error')) return part;
    const output = outputOf(record);
    return output.value === part.output.value ? part : { ...part, output };
  });
  return after.every((part, index) => part === before[index]) ? message : { ...message, content: after };
}

interface OpenCall {
  readonly callId: string;
  readonly tool: string;
}

function resultFor({ callId, tool }: OpenCall, ledger: CallLedger | undefined): Part {
  const record = ledger?.find(callId);
  const output = record === undefined ? outputOfUnseen(ledger?.hasTool(tool) ?? false) : outputOf(record);
  return { type: 'tool-result', toolCallId: callId, toolName: tool, output };
}

/** A guarded tool is written down before it begins, so a call nobody wrote down never began. */
function outputOfUnseen(isGuarded: boolean): Output {
  return failed(
    isGuarded
      ? 'Not started: the run was stopped first. It had no effect.'
      : 'Outcome unknown: the run was stopped while this call was open. It may have taken effect.',
  );
}

function outputOf({ state, output, error, reason, late }: CallRecord): Output {
  switch (state) {
    case 'finished':
      return succeeded(output);
    case 'failed':
      return failed(messageOf(error));
    case 'interrupted':
    case 'not-started':
      return failed(reason === undefined ? state : explain(state, reason));
    case 'running':
      return failed('Outcome unknown: it is still running though the run was stopped. It may yet take effect.');
    case 'unknown':
      if (late?.state === 'finished')
        return failed(`It was cancelled, but it finished later all the same: ${asText(late.value)}`);
      if (late?.state === 'failed') return failed(`It was cancelled and failed later: ${messageOf(late.error)}`);
      return failed(reason === undefined ? state : explain(state, reason));
  }
}

function succeeded(value: unknown): Output {
  return typeof value === 'string'
    ? { type: 'text', value }
    : { type: 'json', value: JSON.parse(asJson(value ?? null)) as unknown };
}

function failed(value: string): Output {
  return { type: 'error-text', value };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : asText(error);
}
