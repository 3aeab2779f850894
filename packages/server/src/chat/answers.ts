import type { CancelReason, Json } from '@whoa/core';
import { describeStoppedCall } from '@whoa/core/internal';
import type { TaskRecord } from '@whoa/tasks';
import type { UIMessage, UIMessageChunk } from 'ai';
import { type CallPart, isCallPart, toolOf } from './ui/message-chunks.ts';

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

/** Returns whether a tool has no code here, so that a page runs it. */
export type IsElsewhere = (tool: string) => boolean;

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
    if (state !== 'approval-responded') return [];
    const { id: approvalId, approved, reason } = part.approval;
    return [{ toolCallId, approvalId, approved, ...(reason !== undefined && { reason }) }];
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
    const counting = answer && countAnswer(part, answer, isElsewhere(toolOf(part)));
    return counting ? [{ answer, isLate: false, ...counting }] : [];
  });
}

function countAnswer(
  part: CallPart,
  answer: PageAnswer,
  isElsewhere: boolean,
): Pick<CountingAnswer, 'chunk'> | CountingAnswer | undefined {
  const { toolCallId } = part;
  if ('approvalId' in answer) {
    const { approvalId, approved, reason } = answer;
    const isAsked = part.state === 'approval-requested' && part.approval.id === approvalId;
    const why = reason === undefined ? {} : { reason };
    return isAsked ? { chunk: { type: 'tool-approval-response', approvalId, approved, ...why } } : undefined;
  }
  const isApproved = part.state === 'approval-responded' && part.approval.approved && isElsewhere;
  // Between two turns no call of the server is open.
  if ((part.state === 'input-available' && part.providerExecuted !== true) || isApproved)
    return { chunk: 'output' in answer ? outputOf(toolCallId, answer.output) : errorOf(toolCallId, answer.errorText) };
  if (part.state !== 'output-error' || !isElsewhere || !part.errorText.startsWith(UNKNOWN)) return undefined;
  if ('errorText' in answer && answer.errorText === part.errorText) return undefined;
  const late =
    'output' in answer
      ? `It was cancelled, but still finished later: ${asText(answer.output)}`
      : `It was cancelled and failed later: ${answer.errorText}`;
  return { answer, isLate: true, chunk: errorOf(toolCallId, late) };
}

const outputOf = (toolCallId: string, output: unknown): UIMessageChunk => ({
  type: 'tool-output-available',
  toolCallId,
  output: output ?? null,
});

const errorOf = (toolCallId: string, errorText: string): UIMessageChunk => ({
  type: 'tool-output-error',
  toolCallId,
  errorText,
});

function asText(output: unknown): string {
  return typeof output === 'string' ? output : JSON.stringify(output ?? null);
}

const UNKNOWN = 'Outcome unknown';

/** Describes the end of a call that waited when its reply was stopped. A page may have run its tool. */
export function describeWaiting(isAsked: boolean, reason: CancelReason): string {
  if (isAsked) return describeStoppedCall('not-started', reason);
  return `${UNKNOWN}: it was stopped (${reason.kind}) before the page sent its result. It may have taken effect.`;
}

/** Returns a history in which no call waits, or the same if none did. */
export function closeWaiting(
  history: readonly UIMessage[],
  reason: CancelReason,
  isElsewhere: IsElsewhere,
): readonly UIMessage[] {
  const last = history.at(-1);
  const isOpen = last?.role === 'assistant' && last.parts.some((part) => isCallPart(part) && isOpenPart(part));
  if (!isOpen) return history;
  const parts = last.parts.map((part) => {
    if (!isCallPart(part) || !isOpenPart(part)) return part;
    const { approval: _, ...call } = part;
    const isInPage =
      part.state === 'input-available' || (part.state === 'approval-responded' && isElsewhere(toolOf(part)));
    const errorText = describeWaiting(!isInPage, reason);
    return { ...call, state: 'output-error', errorText } as CallPart;
  });
  return [...history.slice(0, -1), { ...last, parts }];
}

/** Returns whether a call waits, between two turns. */
function isOpenPart({ state, approval, providerExecuted }: CallPart): boolean {
  if (state === 'approval-requested') return true;
  return (
    (state === 'input-available' && providerExecuted !== true) || (state === 'approval-responded' && approval.approved)
  );
}

export const asJson = (value: unknown): Json => JSON.parse(JSON.stringify(value)) as Json;
