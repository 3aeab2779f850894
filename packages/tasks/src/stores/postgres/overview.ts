import type { PauseTarget, SeenWorkers } from '../../overview.ts';
import { DEFAULTS } from '../../rules/rules.ts';
import type { TaskStatus } from '../../status.ts';
import type { RemoveReceipt } from '../../store.ts';
import type { ConversationRef, TaskRef } from '../../task.ts';
import type { QueuesRequest, SeenQueues, Shared, ShareRequest } from '../driver.ts';
import { Reads } from './reads.ts';
import { checkNames, checkText } from './text.ts';

/** What operators ask of the store. */
export abstract class Overview extends Reads {
  async counts({ tenant, limit }: { tenant: string; limit: number }): Promise<Readonly<Record<TaskStatus, number>>> {
    checkNames({ tenant });
    return this.functions.read('counts', 'count_tasks', [tenant, limit, () => this.rules.retentionMs]);
  }

  async tenants({ after, limit }: { after: string; limit: number }): Promise<readonly string[]> {
    checkText('cursor', after);
    return this.functions.read('tenants', 'list_tenants', [after, limit]);
  }

  workers({ limit }: { limit: number }): Promise<SeenWorkers> {
    return this.functions.read('workers', 'list_workers', [limit]);
  }

  queues({ after, limit }: QueuesRequest): Promise<SeenQueues> {
    for (const name of [after?.agent ?? '', after?.tenant ?? '']) checkText('cursor', name);
    const values = [after?.agent ?? '', after?.tenant ?? '', limit, DEFAULTS.maxCounted];
    return this.functions.read('queues', 'list_queues', values);
  }

  share({ maxAgeMs, found }: ShareRequest): Promise<Shared> {
    return this.functions.call('findOnce', 'share', [maxAgeMs, found ?? null]);
  }

  async conversations(request: { tenant: string; after: string; limit: number }): Promise<readonly string[]> {
    const { tenant, after, limit } = request;
    checkNames({ tenant });
    checkText('cursor', after);
    return this.functions.read('conversations', 'list_conversations', [tenant, after, limit]);
  }

  async pause(target: PauseTarget, isPaused: boolean): Promise<void> {
    checkNames(target);
    const [[kind, name] = []] = Object.entries(target);
    await this.functions.call('pause', 'pause', [kind, name, isPaused]);
  }

  remove(target: TaskRef | ConversationRef): Promise<RemoveReceipt> {
    checkNames({ ...target });
    if ('id' in target) {
      const values = [target.tenant, target.id, () => this.rules.retentionMs];
      return this.functions.call('remove', 'remove_task', values);
    }
    return this.functions.call('remove', 'remove_conversation', [target.tenant, target.conversation]);
  }
}
