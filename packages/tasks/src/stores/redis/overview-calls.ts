import type { PauseTarget, SeenWorkers } from '../../overview.ts';
import type { TaskStatus } from '../../status.ts';
import type { RemoveReceipt } from '../../store.ts';
import type { ConversationRef, TaskRef } from '../../task.ts';
import type { QueuesRequest, SeenQueues, Shared, ShareRequest } from '../driver.ts';
import type { Reply } from './connection/connection.ts';
import { countsOf, namesOf, queuesOf, workersOf } from './replies/overview-replies.ts';
import { SCRIPTS, type Script } from './scripts.ts';

type Values = readonly (string | number)[];

/** What operators ask of the store. */
export abstract class OverviewCalls {
  /** Runs a script on all shards, or on these. */
  protected abstract callAll(script: Script, values: Values, shards?: Iterable<number>): Promise<Reply[]>;
  /** Runs a script on the shard of a task. */
  protected abstract run(script: Script, id: string, values: Values): Promise<Reply>;
  /** Runs a script on the shard of a conversation. */
  protected abstract talk(script: Script, ref: ConversationRef, values: Values): Promise<Reply>;

  async counts({ tenant, limit }: { tenant: string; limit: number }): Promise<Readonly<Record<TaskStatus, number>>> {
    return countsOf(await this.callAll(SCRIPTS.counts, [tenant]), limit);
  }

  async tenants({ after, limit }: { after: string; limit: number }): Promise<readonly string[]> {
    return namesOf(await this.callAll(SCRIPTS.tenants, [after, limit]), limit);
  }

  async workers({ limit }: { limit: number }): Promise<SeenWorkers> {
    return workersOf(await this.callAll(SCRIPTS.workers, [limit]));
  }

  async queues({ after, limit }: QueuesRequest): Promise<SeenQueues> {
    const values = [after?.agent ?? '', after?.tenant ?? '', limit];
    return queuesOf(await this.callAll(SCRIPTS.queues, values), limit);
  }

  async share({ maxAgeMs, found = '' }: ShareRequest): Promise<Shared> {
    const [reply] = await this.callAll(SCRIPTS.share, [maxAgeMs, found], [0]);
    const [isDue, known] = reply as [string, string | null];
    return { isDue: isDue === '1', found: known };
  }

  async conversations(request: { tenant: string; after: string; limit: number }): Promise<readonly string[]> {
    const { tenant, after, limit } = request;
    return namesOf(await this.callAll(SCRIPTS.conversations, [tenant, after, limit]), limit);
  }

  async pause(target: PauseTarget, isPaused: boolean): Promise<void> {
    const [kind, name] = 'agent' in target ? ['agent', target.agent] : ['tenant', target.tenant];
    await this.callAll(SCRIPTS.pause, [kind, name, isPaused ? 1 : 0]);
  }

  async remove(target: TaskRef | ConversationRef): Promise<RemoveReceipt> {
    const reply =
      'id' in target
        ? await this.run(SCRIPTS.remove, target.id, [target.id, target.tenant])
        : ((await this.talk(SCRIPTS.removeConversation, target, [])) as readonly Reply[])[0];
    return { answer: reply as RemoveReceipt['answer'] };
  }
}
