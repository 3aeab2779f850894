import assert from 'node:assert/strict';
import type { Policy } from '@whoa/core';
import type { TakeRequest, TakeResult } from '../delivery/worker-store.ts';
import type { TaskStore } from '../store.ts';
import type { ConversationRef, NewTask, TaskRecord } from '../task.ts';
import { fresh, LEASE_MS, record, TENANT } from './case.ts';

/** The conversation of the cases. */
export const CONVERSATION: ConversationRef = { tenant: TENANT, conversation: 'c1' };

type MessageOptions = Partial<NewTask> & { readonly policy?: Policy };

/** Sends a message to the conversation. The policy defaults to `replace`. */
export async function say(store: TaskStore, input: string, options: Policy | MessageOptions): Promise<TaskRecord> {
  const { policy = 'replace', ...rest } = typeof options === 'string' ? { policy: options } : options;
  const receipt = await store.create({ ...CONVERSATION, agent: 'assistant', input, ...rest }, { policy });
  return receipt.result === 'created' ? receipt.task : assert.fail(`expected a task, got ${receipt.result}`);
}

export const statuses = (store: TaskStore, tasks: readonly TaskRecord[]): Promise<string[]> =>
  Promise.all(tasks.map(async ({ id }) => (await record(store, id)).status));

export const readReasonKind = async (store: TaskStore, { id }: TaskRecord): Promise<string | undefined> =>
  (await record(store, id)).outcome?.reason?.kind;

/** Takes for a new worker, and returns the ids of the tasks. */
export async function taken(store: TaskStore, rest: Partial<TakeRequest> = {}): Promise<string[]> {
  const answer = await take(store, rest);
  return answer.tasks.map(({ task }) => task.id);
}

/** Takes tasks, for a new session by default. Fails if it gets none. */
export async function take(
  store: TaskStore,
  rest: Partial<TakeRequest> = {},
): Promise<TakeResult & { result: 'taken' }> {
  const answer = await store.take({ ...createTakeRequest(), ...rest });
  return answer.result === 'taken' ? answer : assert.fail(`expected tasks, got ${answer.result}`);
}

/** Creates the first take of a new session. */
export function createTakeRequest(): TakeRequest {
  const [session, claim] = [fresh('session'), fresh('claim')];
  return {
    session,
    claim,
    worker: 'w1',
    leaseMs: LEASE_MS,
    takeNumber: 1,
    agents: ['assistant'],
    limit: 100,
  };
}
