import assert from 'node:assert/strict';
import type { Offer, OfferResult, TakenTask } from '../../../delivery/worker-store.ts';
import type { Hint, OfferedTask, TaskStore } from '../../../store.ts';
import { TENANT, usingResource } from '../../case.ts';
import { take } from '../../talk.ts';

export const AGENT = 'assistant';
export const ENGINE = 'a queue';
export const TICKET: Offer = { agent: AGENT, tenant: TENANT };

export interface TakenOffers {
  readonly ids: string[];
  readonly tasks: readonly TakenTask[];
  readonly results: readonly OfferResult[];
  readonly lost: readonly string[];
}

/** Takes what an engine handed out, for a new session. */
export async function takeOffers(store: TaskStore, offers: readonly Offer[], rest = {}): Promise<TakenOffers> {
  const answer = await take(store, { offers, ...rest });
  const ids = answer.tasks.map(({ task }) => task.id);
  return { ids, tasks: answer.tasks, results: answer.offers!, lost: (answer.lostOffers ?? []).map(({ id }) => id) };
}

export async function deliver(store: TaskStore): Promise<void> {
  assert.equal((await store.setEngine(AGENT, ENGINE)).result, 'set');
}

export async function takeBack(store: TaskStore): Promise<void> {
  assert.equal((await store.setEngine(AGENT, undefined)).result, 'set');
}

/** Records what this process is told to offer. */
export async function withOffers(
  store: TaskStore,
  work: (offered: () => Promise<readonly OfferedTask[]>) => Promise<void>,
): Promise<void> {
  const found: OfferedTask[] = [];
  const listen = (hint: Hint): void => void (hint.type === 'offer' && found.push(hint.task));
  await usingResource(await store.watch({ offers: true }, listen), () =>
    work(async () => {
      // What was committed before this read has been reported.
      await store.queues();
      return found.splice(0);
    }),
  );
}
