import assert from 'node:assert/strict';
import type { TaskStatus } from '../../../ledger/rules/status.ts';
import type { TaskStore } from '../../../store.ts';
import { type Brought, bring, type ContractCase, record, tryClaim } from '../../case.ts';

type Operation = (store: TaskStore, task: Brought) => Promise<unknown>;

const OPERATIONS: Record<string, Operation> = {
  'a claim': (store, { id }) => tryClaim(store, id, { worker: 'w2' }),
  'a load': (store, { by }) => store.load(by),
  'an append': (store, { by }) => store.append(by, { after: 0, events: [{ type: 'note' }] }),
  'a release': (store, { by }) => store.release(by),
  'a finish as success': (store, { by }) => store.finish(by, { status: 'success' }),
  'a finish as failed': (store, { by }) => store.finish(by, { status: 'failed' }),
  'a finish as cancelled': (store, { by }) => store.finish(by, { status: 'cancelled' }),
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
    'released',
    'finished cancelled',
    'finished cancelled',
    'finished cancelled',
    'unchanged',
    'too-late',
  ],
  success: ['too-late', 'lost', 'lost', 'lost', 'unchanged', 'unchanged', 'unchanged', 'too-late', 'too-late'],
  failed: ['too-late', 'lost', 'lost', 'lost', 'unchanged', 'unchanged', 'unchanged', 'too-late', 'too-late'],
  cancelled: ['too-late', 'lost', 'lost', 'lost', 'unchanged', 'unchanged', 'unchanged', 'too-late', 'too-late'],
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
        assert.equal(await describeResult(operation(store, task)), answer);
        const now = await record(store, task.id);
        assert.equal(now.status, after);
        if (before.endedAt !== undefined) assert.deepEqual(now, before);
      },
    };
  }),
);

async function describeResult(work: Promise<unknown>): Promise<string> {
  try {
    const given = (await work) as { result?: string };
    return given.result ?? 'orders';
  } catch (error) {
    if ((error as { code?: string }).code === 'LEASE_LOST') return 'lost';
    throw error;
  }
}
