import assert from 'node:assert/strict';
import type { Policy } from '@whoa/core';
import type { TaskStore } from '../../store.ts';
import type { ConversationRef, NewTask, TaskRecord } from '../../task.ts';
import { record, TENANT } from '../case.ts';

/** The conversation that cases talk in. */
export const LINE: ConversationRef = { tenant: TENANT, conversation: 'c1' };

type Said = Partial<NewTask> & { readonly policy?: Policy };

/** Says something in it; `replace` unless said otherwise. */
export async function say(store: TaskStore, input: string, how: Policy | Said): Promise<TaskRecord> {
  const { policy = 'replace', ...rest } = typeof how === 'string' ? { policy: how } : how;
  const receipt = await store.create({ ...LINE, agent: 'assistant', input, ...rest }, { policy });
  return receipt.answer === 'created' ? receipt.task : assert.fail(`expected a task, got ${receipt.answer}`);
}

export const statuses = (store: TaskStore, tasks: readonly TaskRecord[]): Promise<string[]> =>
  Promise.all(tasks.map(async ({ id }) => (await record(store, id)).status));

export const kindOf = async (store: TaskStore, { id }: TaskRecord): Promise<string | undefined> =>
  (await record(store, id)).outcome?.reason?.kind;
