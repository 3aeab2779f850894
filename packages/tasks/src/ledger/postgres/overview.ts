import type { PauseTarget, StoreFigures, WorkersSnapshot } from '../../overview.ts';
import type { Question } from '../../question.ts';
import type { RemoveReceipt } from '../../store.ts';
import type { ConversationRef, TaskRef } from '../../task.ts';
import type {
  DriverEngineReceipt,
  EngineRequest,
  QuestionsRequest,
  QueuesRequest,
  QueuesSnapshot,
  Shared,
  ShareRequest,
} from '../driver.ts';
import { DEFAULTS } from '../rules/rules.ts';
import type { TaskStatus } from '../rules/status.ts';
import { Reads } from './reads.ts';
import { present, type ShownQuestion, toQuestion } from './rows.ts';
import { checkNames, checkText } from './text.ts';

/** What operators ask of the store. */
export abstract class Overview extends Reads {
  async counts({ tenant, limit }: { tenant: string; limit: number }): Promise<Readonly<Record<TaskStatus, number>>> {
    checkNames({ tenant });
    const values = { p_tenant: tenant, p_limit: limit, retention_ms: () => this.rules.retentionMs };
    return this.functions.read('counts', 'count_tasks', values);
  }

  async tenants({ after, limit }: { after: string; limit: number }): Promise<readonly string[]> {
    checkText('cursor', after);
    return this.functions.read('tenants', 'list_tenants', { after, page: limit });
  }

  workers({ limit }: { limit: number }): Promise<WorkersSnapshot> {
    return this.functions.read('workers', 'list_workers', { page: limit });
  }

  queues({ after, limit }: QueuesRequest): Promise<QueuesSnapshot> {
    for (const name of [after?.agent ?? '', after?.tenant ?? '']) checkText('cursor', name);
    const values = { after_queue: after?.agent ?? '', after_tenant: after?.tenant ?? '', page: limit };
    return this.functions.read('queues', 'list_queues', { ...values, p_limit: DEFAULTS.maxCounted });
  }

  share({ maxAgeMs, found }: ShareRequest): Promise<Shared> {
    return this.functions.call('findOnce', 'share', { max_age: maxAgeMs, of_found: found ?? null });
  }

  async figures({ limit }: { limit: number }): Promise<StoreFigures> {
    const found = await this.functions.read<StoreFigures>('figures', 'figures', { p_limit: limit });
    return present(found) as StoreFigures;
  }

  async conversations(request: { tenant: string; after: string; limit: number }): Promise<readonly string[]> {
    const { tenant, after, limit } = request;
    checkNames({ tenant });
    checkText('cursor', after);
    return this.functions.read('conversations', 'list_conversations', { p_tenant: tenant, after, page: limit });
  }

  async questions({ tenant, limit, after }: QuestionsRequest): Promise<readonly Question[]> {
    checkNames({ tenant });
    checkText('cursor', after?.id ?? '');
    const from = { after_at: after?.askedAt ?? -1, after_id: after?.id ?? '' };
    const values = { p_tenant: tenant, ...from, page: limit };
    const found = await this.functions.read<readonly ShownQuestion[]>('questions', 'list_questions', values);
    return found.map(toQuestion);
  }

  pause(target: PauseTarget, isPaused: boolean): Promise<boolean> {
    const [[kind, name] = []] = Object.entries('all' in target ? { all: '' } : target);
    checkNames({ name });
    return this.functions.call('pause', 'pause', { of_kind: kind, of_name: name, is_paused: isPaused });
  }

  setEngine({ agent, engine, lostBefore }: EngineRequest): Promise<DriverEngineReceipt> {
    checkNames({ agent, engine });
    const values = { of_agent: agent, of_engine: engine ?? null, lost_before: lostBefore ?? null };
    return this.functions.call('setEngine', 'set_engine', values);
  }

  remove(target: TaskRef | ConversationRef): Promise<RemoveReceipt> {
    const { tenant } = target;
    if ('id' in target) {
      checkNames({ tenant, id: target.id });
      const values = { p_tenant: tenant, task_id: target.id, retention_ms: () => this.rules.retentionMs };
      return this.functions.call('remove', 'remove_task', values);
    }
    const { conversation } = target;
    checkNames({ tenant, conversation });
    return this.functions.call('remove', 'remove_conversation', { p_tenant: tenant, of_conversation: conversation });
  }
}
