import assert from 'node:assert/strict';
import type { TaskStatus } from '../../status.ts';
import type { TaskStore } from '../../store.ts';
import { type Brought, bring, type ContractCase, LEASE_MS, record } from '../case.ts';

type Operation = (store: TaskStore, task: Brought) => Promise<unknown>;

const OPERATIONS: Record<string, Operation> = {
  'a claim': (store, { id }) => store.claim(id, 'w2', LEASE_MS),
  'a renewal': (store, { id, epoch }) => store.renew(id, epoch, LEASE_MS),
  'an append': (store, { id, epoch }) => store.append(id, epoch, { after: 0, events: [{ type: 'note' }] }),
  'a release': (store, { id, epoch }) => store.release(id, epoch),
  'a finish as success': (store, { id, epoch }) => store.finish(id, epoch, { status: 'success' }),
  'a finish as failed': (store, { id, epoch }) => store.finish(id, epoch, { status: 'failed' }),
  'a finish as cancelled': (store, { id, epoch }) => store.finish(id, epoch, { status: 'cancelled' }),
  'a cancel': (store, { ref }) => store.cancel(ref),
  'a command': (store, { ref }) => store.send(ref, { type: 'cancel-call', callId: 'c1' }),
};

/** For every status, in the order of `OPERATIONS`: the answer, and the status afterwards if it changed. */
const EXPECTED: Record<TaskStatus, readonly string[]> = {
  init: ['claimed running', 'lost', 'lost', 'lost', 'lost', 'lost', 'lost', 'accepted cancelled', 'accepted'],
  running: [
    'held',
    'orders',
    'orders',
    'released init',
    'finished success',
    'finished failed',
    'finished cancelled',
    'accepted cancelling',
    'accepted',
  ],
  cancelling: [
    'held',
    'orders',
    'orders',
    'sealed',
    'finished cancelled',
    'finished cancelled',
    'finished cancelled',
    'already',
    'too-late',
  ],
  success: ['too-late', 'lost', 'lost', 'lost', 'already', 'already', 'already', 'too-late', 'too-late'],
  failed: ['too-late', 'lost', 'lost', 'lost', 'already', 'already', 'already', 'too-late', 'too-late'],
  cancelled: ['too-late', 'lost', 'lost', 'lost', 'already', 'already', 'already', 'too-late', 'too-late'],
};

/** Every operation on a task in every status. */
export const statusCases: readonly ContractCase[] = Object.entries(EXPECTED).flatMap(([status, row]) =>
  Object.entries(OPERATIONS).map(([name, operation], column): ContractCase => {
    const [answer, after = status] = row[column]!.split(' ');
    return {
      title: `${name} on a task that is ${status} answers ${answer}${after === status ? '' : ` and makes it ${after}`}`,
      async run({ store }) {
        const task = await bring(store, status as TaskStatus);
        const before = await record(store, task.id);
        assert.equal(await answerOf(operation(store, task)), answer);
        const now = await record(store, task.id);
        assert.equal(now.status, after);
        if (before.endedAt !== undefined) assert.deepEqual(now, before);
      },
    };
  }),
);

async function answerOf(work: Promise<unknown>): Promise<string> {
  try {
    const given = (await work) as { answer?: string };
    return given.answer ?? 'orders';
  } catch (error) {
    if ((error as { code?: string }).code === 'LEASE_LOST') return 'lost';
    throw error;
  }
}
