import type { Json } from '@whoa/core';

/**
 * What a call waits for. `approve`: a yes or a no. `answer`: a user's answer, which is its result. `client`: the result
 * of a call that runs in a page or in a client.
 */
export type QuestionKind = 'approve' | 'answer' | 'client';

/**
 * How a question was closed. `answered`: its worker acted on the answer. `outdated`: what would run had changed, and it
 * was asked again. `expired`: not answered in time. `withdrawn`: the user wrote instead. `cancelled`, `ended`: its task
 * was, first.
 */
export type QuestionEnd = 'answered' | 'outdated' | 'expired' | 'withdrawn' | 'cancelled' | 'ended';

/** What a call of a task waits for from outside. It keeps its id whatever happens to its worker. */
export interface Question {
  /** Starts with the id of its task: see `createQuestionId`. */
  readonly id: string;
  readonly callId: string;
  readonly kind: QuestionKind;
  readonly askedAt: number;
  readonly expiresAt?: number;
  /** The digest of what was shown. The question itself is in the journal. */
  readonly shown: string;
  readonly answer?: GivenAnswer;
  readonly closed?: { readonly why: QuestionEnd; readonly at: number };
}

/** Identifies a question to a caller that may only see one tenant's tasks. */
export interface QuestionRef {
  readonly tenant: string;
  readonly id: string;
}

/** An answer to a question. */
export interface NewAnswer {
  readonly value: Json;
  /** Who answered. */
  readonly by?: string | undefined;
}

/** An answer as it was accepted. */
interface GivenAnswer {
  readonly value: Json;
  readonly by?: string;
  readonly at: number;
}

/** A question to ask. */
export interface NewQuestion extends Pick<Question, 'id' | 'callId' | 'kind' | 'shown'> {
  /** How long an answer counts. Without it, until the task ends. */
  readonly expiresMs?: number | undefined;
}

/**
 * What a worker has done about a question, in the batch that journals it. `answered`: it acted on the answer. `outdated`:
 * it asks again, or the call is over. `journaled`: it saw that the store closed the question. `withdrawn`: the call of an
 * open question is over.
 */
export interface QuestionClose {
  readonly id: string;
  readonly why: 'answered' | 'outdated' | 'journaled' | 'withdrawn';
}

/** The result of an answer. The first one counts. */
export type AnswerReceipt =
  | { readonly result: 'accepted'; readonly question: string; readonly at: number }
  /** Nothing was written. `given`: the answer that counts, if there was one. */
  | { readonly result: 'too-late'; readonly why: QuestionEnd; readonly given?: GivenAnswer }
  | { readonly result: 'not-found' };

const ID = /^(t-[0-9A-Za-z_-]{1,64})\.[0-9A-Za-z_-]{1,64}$/;

/** Creates the id of a question from its task and a part that is unique there, such as a position in the journal. */
export function createQuestionId(task: string, unique: string | number): string {
  return `${task}.${unique}`;
}

/**
 * Finds the task of a question.
 *
 * @returns The id of the task; `undefined` if this is not the id of a question.
 */
export function findQuestionTask(id: string): string | undefined {
  return ID.exec(id)?.[1];
}

/** Compares questions: oldest first. */
export function compareQuestions(a: Position, b: Position): number {
  return a.askedAt - b.askedAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

type Position = Pick<Question, 'askedAt' | 'id'>;
