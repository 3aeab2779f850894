import { createReason, type Policy } from '@whoa/core';
import type { CreateReceipt } from '../store.ts';
import type { NewTask, TaskRecord } from '../task.ts';
import { admit, endUnstarted, lineOf, ready, receiptFor } from './line.ts';
import { hintOf, type Moment, type Tables } from './tables.ts';

/** Writes a new task down and lets it into its conversation, if it has one. */
export function createMove(
  tables: Tables,
  { id, task, policy, nonce }: { id: string; task: NewTask; policy: Policy; nonce: string },
  moment: Moment,
): CreateReceipt {
  const existing = tables.task(id);
  if (existing !== undefined) {
    // Without a key the id is made of the nonce, so it is the same request.
    const isRepeated = existing.key === undefined || existing.nonce === nonce;
    return isRepeated ? receiptFor(existing) : { answer: 'duplicate', task: existing };
  }
  tables.clear(id);
  const record = recordOf(id, { ...task, nonce }, moment.now);
  if (task.conversation === undefined) {
    const alone = ready(record, moment.now);
    tables.saveTask(alone);
    tables.tell(hintOf('status', alone));
    return receiptFor(alone);
  }
  const holdMs = task.holdMs ?? 0;
  // Don't let a message that is refused take those along that were accepted and are still held back.
  const refuses = policy === 'reject' && holdMs === 0 && lineOf(record, tables)!.current !== undefined;
  if (refuses) return { answer: 'rejected' };
  const gathered = joinGathering(record, tables, moment.now);
  return holdMs > 0
    ? hold(gathered, { until: moment.now + holdMs, policy }, { tables, now: moment.now })
    : admit(gathered, policy, { ...moment, tables });
}

function recordOf(id: string, task: NewTask & { nonce: string }, now: number): TaskRecord {
  const { tenant, agent, conversation, key, worker, nonce } = task;
  return {
    id,
    tenant,
    agent,
    ...(conversation !== undefined && { conversation }),
    ...(key !== undefined && { key, nonce }),
    ...(worker !== undefined && { worker }),
    inputs: [task.input],
    status: 'init',
    epoch: 0,
    attempts: 0,
    createdAt: now,
    commands: [],
    commandsSent: 0,
    position: 0,
    journalBytes: 0,
  };
}

/** Messages that are still held back are taken over by the newest; the older ones end as `merged`. */
function joinGathering(task: TaskRecord, tables: Tables, now: number): TaskRecord {
  const line = lineOf(task, tables)!;
  if (line.gathering === undefined) return task;
  const held = tables.task(line.gathering)!;
  endUnstarted(held, createReason({ kind: 'merged', message: `taken over by ${task.id}` }, now), { tables, now });
  const { gathering: _, ...rest } = line;
  tables.saveConversation({ ...rest, changedAt: now });
  return { ...task, inputs: [...held.inputs, ...task.inputs] };
}

function hold(
  task: TaskRecord,
  held: NonNullable<TaskRecord['held']>,
  { tables, now }: { tables: Tables; now: number },
): CreateReceipt {
  const record: TaskRecord = { ...ready(task, held.until), held };
  tables.saveTask(record);
  tables.saveConversation({ ...lineOf(task, tables)!, gathering: task.id, changedAt: now });
  tables.tell(hintOf('status', record));
  return receiptFor(record);
}
