import assert from 'node:assert/strict';
import type { ClaimRef, Orders, ParkReceipt } from '../../../delivery/worker-store.ts';
import { createQuestionId, type NewQuestion, type Question } from '../../../question.ts';
import type { TaskStore } from '../../../store.ts';
import type { TaskRecord, TaskRef } from '../../../task.ts';
import { claim, create, ordersFor, record, TENANT } from '../../case.ts';

type QuestionOptions = Partial<Omit<NewQuestion, 'id'>>;

/** A task that a worker holds and that has asked. */
export interface Asking {
  readonly id: string;
  readonly ref: TaskRef;
  readonly by: ClaimRef;
  /** Its questions, in the order in which they were asked. */
  readonly asked: readonly string[];
}

/** A task that asks one question, or those that are given. */
export async function ask(
  store: TaskStore,
  questions: readonly QuestionOptions[] = [{}],
  { task, leaseMs }: { readonly task?: TaskRecord; readonly leaseMs?: number } = {},
): Promise<Asking> {
  const { id, tenant } = task ?? (await create(store));
  const claimed = await claim(store, id, leaseMs === undefined ? {} : { leaseMs });
  const { by } = claimed;
  const asked = await askAfter(store, { by, after: claimed.task.position }, questions);
  return { id, ref: { tenant, id }, by, asked };
}

/** Asks as the holder of a claim. */
export async function askMore(
  store: TaskStore,
  by: ClaimRef,
  questions: readonly QuestionOptions[],
): Promise<string[]> {
  return askAfter(store, { by, after: (await record(store, by.id)).position }, questions);
}

async function askAfter(
  store: TaskStore,
  { by, after }: { readonly by: ClaimRef; readonly after: number },
  questions: readonly QuestionOptions[],
): Promise<string[]> {
  const asks = questions.map((one, i) => toNewQuestion(by.id, after + i + 1, one));
  await store.append(by, { after, events: asks.map(({ id }) => ({ type: 'asked', id })), asks });
  return asks.map(({ id }) => id);
}

export function toNewQuestion(task: string, unique: number, rest: QuestionOptions = {}): NewQuestion {
  return { id: createQuestionId(task, unique), callId: `call-${unique}`, kind: 'approve', shown: 'digest', ...rest };
}

/** Parks a task whose worker has read everything. */
export async function park(store: TaskStore, by: ClaimRef): Promise<ParkReceipt> {
  const { position, orderNumber } = await record(store, by.id);
  return store.park(by, { position, orderNumber });
}

/** A task that has asked and is parked. */
export async function askAndPark(...args: Parameters<typeof ask>): Promise<Asking> {
  const asking = await ask(...args);
  const [store] = args;
  assert.deepEqual(await park(store, asking.by), { result: 'parked' });
  return asking;
}

/** The questions that the holder of a claim must know. */
export async function liveQuestions(store: TaskStore, by: ClaimRef): Promise<readonly Question[]> {
  const { questions = [] }: Orders = await ordersFor(store, by);
  return questions;
}

/** How each question of a task was closed; `open` or `answered` if it was not. */
export async function states(store: TaskStore, id: string, tenant: string = TENANT): Promise<string[]> {
  const { questions = [] } = await record(store, id, tenant);
  return questions.map(({ answer, closed }) => closed?.why ?? (answer === undefined ? 'open' : 'given'));
}

export const YES = { value: { decision: 'yes' }, by: 'ada' } as const;
export const NO = { value: { decision: 'no', why: 'too dear' }, by: 'bob' } as const;

/** Journals something and closes questions with it. */
export async function close(store: TaskStore, by: ClaimRef, ids: Closed): Promise<Orders> {
  const { position: after } = await record(store, by.id);
  const closes = Object.entries(ids).flatMap(([why, some]) => some.map((id) => ({ id, why: why as keyof Closed })));
  return store.append(by, { after, events: ['closed'], closes });
}

type Closed = Partial<Record<'answered' | 'outdated' | 'journaled', readonly string[]>>;

export async function assertRefused(work: Promise<unknown>, why: string): Promise<void> {
  await assert.rejects(work, { code: 'QUESTION_REFUSED', why });
}

/** The stage, status and number of open questions of a task. */
export async function getWhere(store: TaskStore, { ref }: Pick<Asking, 'ref'>): Promise<unknown[]> {
  const { stage, status, waiting } = await record(store, ref.id, ref.tenant);
  return [stage, status, waiting];
}
