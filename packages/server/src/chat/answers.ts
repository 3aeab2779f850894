import type { CancelReason } from '@whoa/core';
import { describeStoppedCall } from '@whoa/core/internal';
import type { TaskRecord } from '@whoa/tasks';
import type { UIMessage, UIMessageChunk } from 'ai';
import { type CallPart, findWaitingCalls, getToolName, type IsElsewhere, isCallPart } from './ui/call-parts.ts';

/** What a page says about one call: a person's answer, or the end of a tool that ran in the page. */
export type PageAnswer = { readonly toolCallId: string } & (
  | { readonly approvalId: string; readonly approved: boolean; readonly reason?: string }
  | { readonly output: unknown }
  | { readonly errorText: string }
);

/** The input of a task that continues a message with what a page has answered. It is not a message. */
export interface Answers {
  readonly type: 'answers';
  /** The message that has the calls. */
  readonly messageId: string;
  readonly answers: readonly PageAnswer[];
}

/** Returns what a task continues; `undefined` if its input is a message. */
export function findAnswers({ inputs }: Pick<TaskRecord, 'inputs'>): Answers | undefined {
  const input = inputs[0] as { readonly type?: string } | null | undefined;
  return input?.type === 'answers' ? (input as Answers) : undefined;
}

/** Returns everything that a page says about the calls of a message. Most of it is not new. */
export function readAnswers({ id: messageId, parts }: UIMessage): Answers {
  const answers = parts.filter(isCallPart).flatMap((part): PageAnswer[] => {
    const { toolCallId, state } = part;
    if (state === 'output-available') return part.preliminary === true ? [] : [{ toolCallId, output: part.output }];
    if (state === 'output-error') return [{ toolCallId, errorText: String(part.errorText) }];
    const { id: approvalId, approved, reason } = (part.approval ?? {}) as Partial<Record<string, unknown>>;
    if (state !== 'approval-responded' || typeof approvalId !== 'string' || typeof approved !== 'boolean') return [];
    return [{ toolCallId, approvalId, approved, ...(typeof reason === 'string' && { reason }) }];
  });
  return { type: 'answers', messageId, answers };
}

/** An answer that counts, and what it adds to the message. */
export interface CountingAnswer {
  readonly answer: PageAnswer;
  readonly chunk: UIMessageChunk;
  /** Its call was closed before, so the reply does not continue. */
  readonly isLate: boolean;
}

/** Returns the answers that count: those to calls that are open, and results of calls that were given up. */
export function findCounting(
  message: UIMessage,
  { answers }: Answers,
  isElsewhere: IsElsewhere,
): readonly CountingAnswer[] {
  return message.parts.filter(isCallPart).flatMap((part) => {
    const answer = answers.find(({ toolCallId }) => toolCallId === part.toolCallId);
    const chunk = answer && chunkFor(part, answer, isElsewhere(getToolName(part)));
    return chunk ? [{ answer, chunk, isLate: part.state === 'output-error' }] : [];
  });
}

function chunkFor(part: CallPart, answer: PageAnswer, isElsewhere: boolean): UIMessageChunk | undefined {
  const { toolCallId, state } = part;
  if ('approvalId' in answer) {
    const { toolCallId: _, ...said } = answer;
    const isAsked = state === 'approval-requested' && part.approval.id === said.approvalId;
    return isAsked ? { type: 'tool-approval-response', ...said } : undefined;
  }
  const isApproved = state === 'approval-responded' && part.approval.approved && isElsewhere;
  // Between two turns no other call of the server is open.
  if ((state === 'input-available' && part.providerExecuted !== true) || isApproved) {
    if ('errorText' in answer) return { type: 'tool-output-error', ...answer };
    return { type: 'tool-output-available', toolCallId, output: answer.output ?? null };
  }
  if (state !== 'output-error' || !isElsewhere || !part.errorText.startsWith(UNKNOWN)) return undefined;
  if ('errorText' in answer && answer.errorText === part.errorText) return undefined;
  return { type: 'tool-output-error', toolCallId, errorText: describeLate(answer) };
}

/** Describes the end of a call that was given up before. */
export function describeLate(end: { readonly output: unknown } | { readonly errorText: string }): string {
  if ('errorText' in end) return `It was cancelled and failed later: ${end.errorText}`;
  const output = typeof end.output === 'string' ? end.output : JSON.stringify(end.output ?? null);
  return `It was cancelled, but still finished later: ${output}`;
}

/** How a call ended that its reply had given up. */
export interface LateResult {
  /** The message that has the call. */
  readonly late: string;
  readonly toolCallId: string;
  readonly errorText: string;
}

/** Returns a history in which the call says how it ended. The model reads it in the next turn. */
export function withLateEnd(history: readonly UIMessage[], { late, toolCallId, errorText }: LateResult): UIMessage[] {
  const isUnknown = (part: UIMessage['parts'][number]): boolean =>
    isCallPart(part) &&
    part.toolCallId === toolCallId &&
    part.state === 'output-error' &&
    part.errorText.startsWith(UNKNOWN);
  return history.map((message) =>
    message.id === late
      ? { ...message, parts: message.parts.map((part) => (isUnknown(part) ? { ...part, errorText } : part)) as never }
      : message,
  );
}

const UNKNOWN = 'Outcome unknown';

/** Describes the end of a call that waited when its reply was stopped. A page may have run its tool. */
export function describeWaiting(isAsked: boolean, reason: CancelReason): string {
  if (isAsked) return describeStoppedCall('not-started', reason);
  return `${UNKNOWN}: it was stopped (${reason.kind}) before the page sent its result. It may have taken effect.`;
}

/** Returns whether a user's stop has closed calls of a message that waited. */
export function isStopped({ parts }: UIMessage): boolean {
  const ends = [true, false].map((isAsked) => describeWaiting(isAsked, { kind: 'user', at: 0 }));
  return parts.some((part) => isCallPart(part) && part.state === 'output-error' && ends.includes(part.errorText));
}

/** Returns a history in which no call waits, or the same if none did. */
export function closeWaiting(
  history: readonly UIMessage[],
  reason: CancelReason,
  isElsewhere: IsElsewhere,
): readonly UIMessage[] {
  const last = history.at(-1);
  // Between two turns no call of the server is open, unless it was approved and others are not.
  const waiting = last?.role === 'assistant' ? findWaitingCalls(last, () => true) : [];
  if (last === undefined || waiting.length === 0) return history;
  const parts = last.parts.map((part) => {
    if (!isCallPart(part) || !waiting.includes(part)) return part;
    const { approval, ...call } = part;
    const isInPage = approval === undefined || (approval.approved === true && isElsewhere(getToolName(part)));
    return { ...call, state: 'output-error', errorText: describeWaiting(!isInPage, reason) } as CallPart;
  });
  return [...history.slice(0, -1), { ...last, parts }];
}
