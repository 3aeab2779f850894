import { createHash } from 'node:crypto';
import type { Json } from '@whoa/core';
import type { ApprovalAnswer, ApprovalQuestion, ApprovalRequest } from '@whoa/core/approval';
import { CallOutcomeUnknownError, describeRequest } from '@whoa/core/internal';
import type { Question, QuestionClose, QuestionKind } from '../../question.ts';

/** What the model gets as the reason if a question was closed without an answer. */
const CLOSED_TEXT: Readonly<Record<string, string>> = {
  expired: 'no one answered in time',
  withdrawn: 'the user wrote a new message instead of answering',
};
const DECISIONS: readonly unknown[] = ['yes', 'no', 'always', 'never'] satisfies ApprovalAnswer['decision'][];
const NOT_UNDERSTOOD = 'the answer was not understood';

export function isDecided({ answer, closed }: Question): boolean {
  return answer !== undefined || closed !== undefined;
}

/** What a call of a tool waits for when it may start; `undefined` if the tool has code. */
export function toKind({ answeredBy }: ApprovalRequest['tool']): QuestionKind | undefined {
  return answeredBy === 'user' ? 'answer' : answeredBy;
}

/** How a question is closed whose call is over. */
export function toUnusedClose({ answer, closed }: Question): QuestionClose['why'] {
  if (closed !== undefined) return 'journaled';
  return answer === undefined ? 'withdrawn' : 'outdated';
}

/** Reads an answer to an approval. Only a clear yes is one. */
export function toApproval({ answer, closed }: Question): ApprovalAnswer {
  if (answer === undefined) return { decision: 'no', why: describeClosed(closed) };
  const { decision, why } = (answer.value ?? {}) as { decision?: unknown; why?: unknown };
  if (!DECISIONS.includes(decision)) return { decision: 'no', why: NOT_UNDERSTOOD };
  return { decision: decision as ApprovalAnswer['decision'], ...(typeof why === 'string' && { why }) };
}

/** Returns the result of a call that was answered: `{ answer }` or `{ error }`. Throws if there is none. */
export function toCallResult({ kind, answer, closed }: Question): Json {
  const given = (answer?.value ?? {}) as { readonly answer?: Json; readonly error?: unknown };
  if (answer === undefined && kind === 'client') throw new CallOutcomeUnknownError(describeClosed(closed));
  if (answer === undefined) throw new Error(describeClosed(closed));
  if (given.answer !== undefined) return given.answer;
  throw new Error(typeof given.error === 'string' ? given.error : NOT_UNDERSTOOD);
}

function describeClosed(closed: Question['closed']): string {
  return CLOSED_TEXT[closed!.why] ?? `closed: ${closed!.why}`;
}

/** Describes a call that is answered, for whoever answers it. */
export function toQuestion(request: ApprovalRequest): ApprovalQuestion {
  return { ...describeRequest(request), alwaysScope: 'this call only' };
}

/** What the journal says about a call that is answered. A client may start once it has read it. */
export function toCallEvents({ call, tool, within }: ApprovalRequest, kind: QuestionKind, about: object): object[] {
  const asked = { type: 'question-asked', kind, ...about, input: call.input, schema: toAnswerSchema(tool) };
  if (kind !== 'client' || within !== undefined) return [asked];
  return [{ type: 'call-intent', callId: call.id, tool: tool.name }, asked];
}

/** Returns the JSON Schema of an answer, if its tool has one or its schema can describe itself. */
function toAnswerSchema({ answerSchema, answerJsonSchema }: ApprovalRequest['tool']): object | undefined {
  if (answerJsonSchema !== undefined) return answerJsonSchema;
  try {
    return answerSchema?.['~standard'].jsonSchema?.input({ target: 'draft-07' });
  } catch {
    return undefined;
  }
}

/** Answers for a user who has approved what was shown. */
export function compareShown(approved: string, shown: string): ApprovalAnswer {
  return approved === shown ? { decision: 'yes' } : { decision: 'no', why: 'it is no longer what was approved' };
}

/** Identifies what a user was shown. What looks alike can differ, so it includes the input itself. */
export function toDigest(
  { callId: _callId, alwaysScope: _always, ...question }: ApprovalQuestion,
  request: ApprovalRequest,
): string {
  return toHash(JSON.stringify([question, request.input as Json]) ?? '');
}

export function toHash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
