import assert from 'node:assert/strict';
import type * as FastCheck from 'fast-check';
import type { FinalStatus, TaskStatus } from '../status.ts';
import type { TaskStore } from '../store.ts';
import { withOwned } from './case.ts';
import type { StoreHarness, StoreKind } from './contract.ts';

/** What one task must look like, told in the fewest words. */
interface ModelTask {
  readonly id: string;
  readonly conversation: string | undefined;
  status: TaskStatus;
  epoch: number;
  attempts: number;
  leaseUntil: number;
  position: number;
  ends: number;
}

interface Model {
  now: number;
  readonly tasks: ModelTask[];
  /** Tasks of each conversation that live, in the order of their turns. */
  readonly lines: Map<string, ModelTask[]>;
}

interface Real {
  readonly store: TaskStore;
  readonly harness: StoreHarness;
}

type Command = FastCheck.AsyncCommand<Model, Real>;

const TENANT = 'model';
const LEASE_MS = 1_000;
const ATTEMPTS_MAX = 3;
const TASKS_MAX = 6;

export interface ModelOptions {
  readonly runs: number;
  readonly seed?: number;
  readonly commandsMax?: number;
}

/** Throws random sequences of operations at a store and compares every answer with a model of the contract. */
export async function checkStoreModel(fc: typeof FastCheck, kind: StoreKind, options: ModelOptions): Promise<void> {
  const { runs, seed = 1, commandsMax = 40 } = options;
  const commands = fc.commands(commandsOf(fc), { maxCommands: commandsMax });
  const property = fc.asyncProperty(commands, async (sequence) => {
    await withOwned(await kind.createHarness(), async (harness) => {
      await withOwned(await harness.open({ attemptsMax: ATTEMPTS_MAX }), async (store) => {
        const lines = new Map<string, ModelTask[]>();
        await fc.asyncModelRun(() => ({ model: { now: 0, tasks: [], lines }, real: { store, harness } }), sequence);
      });
    });
  });
  await fc.assert(property, { numRuns: runs, seed });
}

function commandsOf(fc: typeof FastCheck): FastCheck.Arbitrary<Command>[] {
  const index = fc.nat(TASKS_MAX - 1);
  const stale = fc.nat(2);
  const status = fc.constantFrom<FinalStatus>('success', 'failed', 'cancelled');
  const policy = fc.constantFrom<'replace' | 'queue'>('replace', 'queue');
  const conversation = fc.constantFrom(undefined, 'c1', 'c1', 'c2');
  return [
    fc.tuple(policy, conversation).map(([by, line]) => createCommand(by, line)),
    index.map(claimCommand),
    fc.tuple(index, stale).map(([i, ago]) => renewCommand(i, ago)),
    fc.tuple(index, stale).map(([i, ago]) => appendCommand(i, ago)),
    fc.tuple(index, stale, status).map(([i, ago, end]) => finishCommand(i, { ago, end })),
    index.map(cancelCommand),
    fc.tuple(index, stale).map(([i, ago]) => releaseCommand(i, ago)),
    fc.constantFrom(100, LEASE_MS).map(advanceCommand),
  ];
}

function command(
  title: string,
  check: (model: Model) => boolean,
  run: (model: Model, real: Real) => Promise<void>,
): Command {
  return {
    check,
    toString: () => title,
    async run(model, real) {
      await run(model, real);
      await compare(model, real);
    },
  };
}

const exists =
  (i: number) =>
  ({ tasks }: Model): boolean =>
    i < tasks.length;
const isLive = ({ status }: ModelTask): boolean => status === 'init' || status === 'running' || status === 'cancelling';
const isOwned = (task: ModelTask, epoch: number): boolean =>
  epoch === task.epoch && (task.status === 'running' || task.status === 'cancelling');

function createCommand(policy: 'replace' | 'queue', conversation: string | undefined): Command {
  const title = `create(${policy}, ${conversation})`;
  return command(
    title,
    ({ tasks }) => tasks.length < TASKS_MAX,
    async (model, { store }) => {
      const wanted = { tenant: TENANT, agent: 'a', input: 1, conversation, worker: 'home' };
      const receipt = await store.create(wanted, { policy });
      assert.ok(receipt.answer === 'created');
      const task: ModelTask = {
        id: receipt.task.id,
        conversation,
        status: 'init',
        epoch: 0,
        attempts: 0,
        leaseUntil: 0,
        position: 0,
        ends: 0,
      };
      model.tasks.push(task);
      if (conversation === undefined) return;
      const line = model.lines.get(conversation) ?? [];
      if (policy === 'replace') {
        for (const other of line) {
          if (other.status === 'init') end(model, other, 'cancelled');
          else other.status = 'cancelling';
        }
      }
      model.lines.set(conversation, [...(model.lines.get(conversation) ?? []), task]);
    },
  );
}

function claimCommand(i: number): Command {
  return command(`claim(${i})`, exists(i), async (model, { store }) => {
    const task = model.tasks[i]!;
    const claim = await store.claim(task.id, 'w', LEASE_MS);
    if (!isLive(task)) return assert.deepEqual(claim, { answer: 'too-late', status: task.status });
    const turn = task.conversation === undefined || model.lines.get(task.conversation)?.[0] === task;
    if (!turn) return assert.equal(claim.answer, 'waiting');
    if (task.status !== 'init' && model.now < task.leaseUntil) return assert.equal(claim.answer, 'held');
    if (task.status === 'running' && task.attempts >= ATTEMPTS_MAX) {
      assert.deepEqual(claim, { answer: 'too-late', status: 'failed' });
      task.epoch++;
      return end(model, task, 'failed');
    }
    assert.equal(claim.answer, 'claimed');
    if (task.status === 'init') task.status = 'running';
    task.epoch++;
    task.attempts++;
    task.leaseUntil = model.now + LEASE_MS;
  });
}

function renewCommand(i: number, ago: number): Command {
  return command(`renew(${i}, -${ago})`, exists(i), async (model, { store }) => {
    const task = model.tasks[i]!;
    const owned = isOwned(task, task.epoch - ago);
    const orders = await ownedOnly(owned, store.renew(task.id, task.epoch - ago, LEASE_MS));
    if (!owned) return;
    task.leaseUntil = model.now + LEASE_MS;
    assert.equal(orders?.stop !== undefined, task.status === 'cancelling');
  });
}

function appendCommand(i: number, ago: number): Command {
  return command(`append(${i}, -${ago})`, exists(i), async (model, { store }) => {
    const task = model.tasks[i]!;
    const owned = isOwned(task, task.epoch - ago);
    await ownedOnly(owned, store.append(task.id, task.epoch - ago, { after: task.position, events: ['x'] }));
    if (owned) task.position++;
  });
}

function finishCommand(i: number, { ago, end: asked }: { ago: number; end: FinalStatus }): Command {
  return command(`finish(${i}, -${ago}, ${asked})`, exists(i), async (model, { store }) => {
    const task = model.tasks[i]!;
    const epoch = task.epoch - ago;
    const owned = isOwned(task, epoch);
    const repeated = epoch === task.epoch && !isLive(task);
    const receipt = await ownedOnly(owned || repeated, store.finish(task.id, epoch, { status: asked }));
    if (repeated) assert.deepEqual(receipt, { answer: 'already', status: task.status });
    if (!owned) return;
    end(model, task, task.status === 'cancelling' ? 'cancelled' : asked);
    assert.equal(receipt!.status, task.status);
    const next = task.conversation === undefined ? undefined : model.lines.get(task.conversation)?.[0];
    assert.equal(receipt!.successor, next?.id);
  });
}

function cancelCommand(i: number): Command {
  return command(`cancel(${i})`, exists(i), async (model, { store }) => {
    const task = model.tasks[i]!;
    const { answer } = await store.cancel({ tenant: TENANT, id: task.id }, {}, { how: 'kill' });
    if (!isLive(task)) assert.equal(answer, 'too-late');
    else if (task.status === 'cancelling') assert.ok(answer === 'already' || answer === 'escalated');
    else assert.equal(answer, 'accepted');
    if (task.status === 'init') end(model, task, 'cancelled');
    else if (task.status === 'running') task.status = 'cancelling';
  });
}

function releaseCommand(i: number, ago: number): Command {
  return command(`release(${i}, -${ago})`, exists(i), async (model, { store }) => {
    const task = model.tasks[i]!;
    const epoch = task.epoch - ago;
    const owned = isOwned(task, epoch);
    const repeated = epoch === task.epoch && task.status === 'init';
    const receipt = await ownedOnly(owned || repeated, store.release(task.id, epoch));
    if (repeated) assert.equal(receipt?.answer, 'already');
    if (!owned) return;
    assert.equal(receipt?.answer, task.status === 'cancelling' ? 'sealed' : 'released');
    if (task.status === 'cancelling') return;
    task.status = 'init';
    task.attempts--;
  });
}

function advanceCommand(ms: number): Command {
  return command(
    `advance(${ms})`,
    () => true,
    async (model, { harness }) => {
      model.now += ms;
      await harness.advance(ms);
    },
  );
}

function end(model: Model, task: ModelTask, status: FinalStatus): void {
  task.status = status;
  task.ends++;
  if (task.conversation === undefined) return;
  const line = model.lines.get(task.conversation) ?? [];
  model.lines.set(
    task.conversation,
    line.filter((one) => one !== task),
  );
}

async function ownedOnly<T>(owned: boolean, work: Promise<T>): Promise<T | undefined> {
  if (owned) return work;
  await assert.rejects(work, { code: 'LEASE_LOST' });
  return undefined;
}

/** What the store says now, beside what it should say. */
async function compare(model: Model, { store }: Real): Promise<void> {
  const live = new Map<string, number>();
  for (const task of model.tasks) {
    const record = await store.get({ tenant: TENANT, id: task.id });
    const { status, epoch, position } = record ?? assert.fail('a task is gone');
    assert.deepEqual({ status, epoch, position }, { status: task.status, epoch: task.epoch, position: task.position });
    assert.ok(task.ends <= 1);
    if ((status === 'running' || status === 'cancelling') && task.conversation !== undefined) {
      live.set(task.conversation, (live.get(task.conversation) ?? 0) + 1);
    }
  }
  for (const count of live.values()) assert.ok(count <= 1, 'two tasks of one conversation live at once');
}
