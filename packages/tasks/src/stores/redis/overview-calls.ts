import type { RemoveReceipt } from '../../store.ts';
import type { StoreDriver } from '../driver.ts';
import type { Reply } from './connection/connection.ts';
import { toCounts, toNames, toQueues, toWorkers } from './replies/overview-replies.ts';
import { toQuestions } from './replies/question-replies.ts';
import type { Shards } from './shards.ts';

type Overview =
  | 'counts'
  | 'tenants'
  | 'workers'
  | 'queues'
  | 'share'
  | 'conversations'
  | 'questions'
  | 'pause'
  | 'remove';

/** What operators ask of the store. */
export function createOverview(shards: Shards): Pick<StoreDriver, Overview> {
  return {
    counts: async ({ tenant, limit }) => toCounts(await shards.runOnAll('counts', { tenant }), limit),
    tenants: async (request) => toNames(await shards.runOnAll('tenants', request), request.limit),
    workers: async (request) => toWorkers(await shards.runOnAll('workers', request)),
    async queues({ after, limit }) {
      const values = { afterAgent: after?.agent ?? '', afterTenant: after?.tenant ?? '', limit };
      return toQueues(await shards.runOnAll('queues', values), limit);
    },
    async share({ maxAgeMs, found = '' }) {
      const reply = await shards.runOn(0, 'share', { maxAgeMs, found });
      const [isDue, known] = reply as [string, string | null];
      return { isDue: isDue === '1', found: known };
    },
    conversations: async (request) => toNames(await shards.runOnAll('conversations', request), request.limit),
    async questions({ tenant, limit, after }) {
      const values = { tenant, limit, at: after?.askedAt ?? '', last: after?.id ?? '' };
      const replies = await shards.runOnAll('questions', values);
      return toQuestions(replies.flatMap((reply) => reply as readonly string[])).slice(0, limit);
    },
    async pause(target, isPaused) {
      const named = 'agent' in target ? { kind: 'agent', name: target.agent } : { kind: 'tenant', name: target.tenant };
      await shards.runOnAll('pause', { ...named, isPaused: isPaused ? 1 : 0 });
    },
    async remove(target) {
      const reply =
        'id' in target
          ? await shards.run('remove', target.id, target)
          : ((await shards.talk('removeConversation', target, target)) as readonly Reply[])[0];
      return { result: reply as RemoveReceipt['result'] };
    },
  };
}
