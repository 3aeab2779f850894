import type { ApprovalQuestion, ApprovalRequest, Ask } from '@whoa/core/approval';
import type { Question, QuestionClose, QuestionKind } from '../../question.ts';

export interface NewlyAsked {
  readonly question: ApprovalQuestion;
  readonly request: ApprovalRequest;
  readonly kind: QuestionKind;
  /** Questions that this one replaces, or that it follows. */
  readonly closes?: readonly QuestionClose[];
  readonly signal: AbortSignal;
}

export interface AskedAgain {
  readonly question: ApprovalQuestion;
  readonly asking: Parameters<Ask>[2];
  readonly signal: AbortSignal;
}

export interface Waiting {
  readonly id: string;
  readonly callId: string;
  /** What an `always` would be remembered under. */
  readonly key?: string | undefined;
  readonly signal: AbortSignal;
}

export interface Wait extends Pick<Waiting, 'callId' | 'key'> {
  readonly settle: (question: Question) => void;
}

/** A message of the user is stored that the run has not read: it comes before the question. */
export class UnreadMessage extends Error {
  override readonly message: string = 'the user wrote a message first';
}
