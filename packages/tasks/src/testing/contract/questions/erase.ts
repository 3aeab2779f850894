import assert from 'node:assert/strict';
import { eraseRecords } from '../../../operate/erase.ts';
import type { TaskStore } from '../../../store.ts';
import { type ContractCase, claim, TENANT } from '../../case.ts';
import { CONVERSATION, say, take } from '../../talk.ts';
import { type Asking, askAndPark, YES } from './asking.ts';

/** An answered question of an ended task, and one that was open when its parked task was cancelled. */
async function askAndEnd(store: TaskStore): Promise<readonly Asking[]> {
  const answered = await askAndPark(store, [{}], { task: await say(store, 'one', 'queue') });
  await store.answer({ tenant: TENANT, id: answered.asked[0]! }, YES, { nonce: 'n' });
  await store.finish((await claim(store, answered.id)).by, { status: 'success', newMessages: ['hello'] });
  const parked = await askAndPark(store, [{}], { task: await say(store, 'two', 'queue') });
  await store.cancel(parked.ref);
  const { tasks } = await take(store);
  await store.finish(tasks[0]!.claim, { status: 'cancelled' });
  return [answered, parked];
}

/** Erasing takes questions, their answers and what was shown. */
export const eraseCases: readonly ContractCase[] = [{ tenant: TENANT }, CONVERSATION].map(
  (target): ContractCase => ({
    title: `an erased ${'conversation' in target ? 'conversation' : 'tenant'} takes its questions and answers with it`,
    async run({ store }) {
      const asked = await askAndEnd(store);
      const receipt = await eraseRecords(store, target);
      assert.deepEqual([receipt.tasks, receipt.conversations, receipt.isComplete], [2, 1, true]);
      for (const { ref, asked: ids } of asked) {
        assert.equal(await store.get(ref), undefined);
        assert.deepEqual(await store.read(ref), []);
        const again = await store.answer({ tenant: TENANT, id: ids[0]! }, YES, { nonce: 'n' });
        assert.deepEqual(again, { result: 'not-found' });
      }
      assert.deepEqual((await store.questions({ tenant: TENANT })).questions, []);
    },
  }),
);
