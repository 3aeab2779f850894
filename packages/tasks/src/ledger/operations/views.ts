import type { Question } from '../../question.ts';
import type { Hint } from '../../store.ts';
import type { TaskRecord, TaskSummary } from '../../task.ts';
import { parseActivity } from '../rules/activity.ts';
import { hashClaim } from '../rules/claim-hash.ts';
import { toContext } from '../rules/new-task.ts';
import { toReadyQueueName } from '../rules/suspects.ts';
import type { ReadyQueue, StoredQuestion, StoredTask, Tables } from './tables.ts';

/** Returns the ready queue of a ready task. */
export const toReadyQueue = (task: StoredTask): ReadyQueue => ({ agent: toReadyQueueName(task), tenant: task.tenant });

/** Creates the hint for a task's watchers. A cancel includes its order. */
export function toHint(type: 'status' | 'cancel' | 'command' | 'preferred' | 'journal', task: StoredTask): Hint {
  const { id, tenant, worker, conversation, epoch, claim, orderNumber, stop } = task;
  return {
    type,
    id,
    tenant,
    ...(worker !== undefined && { worker }),
    ...(conversation !== undefined && { conversation }),
    ...(type === 'cancel' &&
      stop !== undefined &&
      claim !== undefined && { order: { epoch, claim, orderNumber, stop } }),
  };
}

/** Returns the fields of a task that callers may see. */
export function toSummary(task: StoredTask): TaskSummary {
  const { inputOwner: _owner, session: _session, released: _released, hasPendingOrders: _orders, ...rest } = task;
  const { charges: _charges, lostClaim: _lostClaim, isCharged: _isCharged, keepsQuestions: _keeps, ...open } = rest;
  const { isOffered: _isOffered, offeredAt: _offeredAt, ...delivered } = open;
  const { storedActivity, context: _context, questionCounts, claim, ...head } = delivered;
  return {
    ...head,
    ...(claim !== undefined && { claimHash: hashClaim(claim) }),
    ...(storedActivity !== undefined && { activity: parseActivity(storedActivity, head) }),
    ...(questionCounts && { hasAsked: true, ...(questionCounts.open > 0 && { waiting: questionCounts.open }) }),
  };
}

/** Returns what callers may see of a task, with its inputs and context. */
export function toRecord(task: StoredTask, tables: Tables): TaskRecord {
  const asked = task.questionCounts === undefined ? undefined : tables.allQuestions(task.id).map(toQuestion);
  const questions = asked && { questions: asked };
  return { ...toSummary(task), inputs: tables.inputs(task.inputOwner), ...toContext(task.context), ...questions };
}

/** Returns what callers may see of a question. */
export function toQuestion(question: StoredQuestion): Question {
  const { task: _task, tenant: _tenant, state: _state, nonce: _nonce, ...shown } = question;
  return shown;
}
