import assert from 'node:assert/strict';
import type * as FastCheck from 'fast-check';
import type { ClaimRef } from '../delivery/worker-store.ts';
import { LIMITS } from '../ledger/rules/rules.ts';
import type { FinalStatus } from '../ledger/rules/status.ts';
import type { TaskStore } from '../store.ts';
import { expire, tryClaim, usingResource } from './case.ts';
import type { StoreHarness, StoreKind } from './contract.ts';
import { end, type Model, type ModelTask, reclaim } from './model-state.ts';

interface Real {
  readonly store: TaskStore;
  readonly harness: StoreHarness;
}

type Command = FastCheck.AsyncCommand<Model, Real>;

const TENANT = 'model';
const LEASE_MS = 1_000;
const MAX_ATTEMPTS = 2;
const MAX_TASKS = 6;

export interface ModelOptions {
  readonly runs: number;
  readonly seed?: number;
  readonly maxCommands?: number;
}

/**
 * Runs random sequences of operations on a store and compares every answer with a model of the contract.
 *
 * @returns A promise that resolves when all agreed.
 * @throws Error with the shortest sequence that differs.
 */
export async function checkStoreModel(fc: typeof FastCheck, kind: StoreKind, options: ModelOptions): Promise<void> {
  const { runs, seed = 1, maxCommands = 40 } = options;
  const commands = fc.commands(createCommands(fc), { maxCommands });
  const property = fc.asyncProperty(commands, async (sequence) => {
    await usingResource(await kind.createHarness(), async (harness) => {
      await usingResource(await harness.open({ maxAttempts: MAX_ATTEMPTS }), async (store) => {
        const queues = new Map<string, ModelTask[]>();
        await fc.asyncModelRun(() => ({ model: { tasks: [], queues }, real: { store, harness } }), sequence);
      });
    });
  });
  await fc.assert(property, { numRuns: runs, seed });
}

function createCommands(fc: typeof FastCheck): FastCheck.Arbitrary<Command>[] {
  const index = fc.nat(MAX_TASKS - 1);
  const stale = fc.nat(2);
  const status = fc.constantFrom<FinalStatus>('success', 'failed', 'cancelled');
  const policy = fc.constantFrom<'replace' | 'queue'>('replace', 'queue');
  const conversation = fc.constantFrom(undefined, 'c1', 'c1', 'c2');
  return [
    fc.tuple(policy, conversation).map(([by, queue]) => createCommand(by, queue)),
    index.map(claimCommand),
    index.map(loadCommand),
    fc.tuple(index, stale, fc.nat(7)).map(([i, ago, n]) => appendCommand(i, { ago, progress: n === 0 })),
    fc.tuple(index, stale, status).map(([i, ago, end]) => finishCommand(i, { ago, end })),
    index.map(cancelCommand),
    fc.tuple(index, stale).map(([i, ago]) => releaseCommand(i, ago)),
    fc.constant(expireCommand()),
    // Often: it takes four crashes without progress to fail.
    fc.constant(expireCommand()),
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
/** A claim of a task: the latest, or one before; a made-up one if it never had so many. */
const getClaim = ({ id, claims }: ModelTask, ago: number): ClaimRef =>
  claims.at(-1 - ago) ?? { id, epoch: 1, session: 'none', claim: 'none' };
const isOwned = (task: ModelTask, ago: number): boolean => ago === 0 && task.held;
/** Whether anything of it may have happened: then a cancel leaves it to be settled. */
const hasStarted = ({ status, position }: ModelTask): boolean => status !== 'init' || position > 0;

function createCommand(policy: 'replace' | 'queue', conversation: string | undefined): Command {
  const title = `create(${policy}, ${conversation})`;
  return command(
    title,
    ({ tasks }) => tasks.length < MAX_TASKS,
    async (model, { store }) => {
      const wanted = { tenant: TENANT, agent: 'a', input: 1, conversation, preferredWorker: 'home' };
      const receipt = await store.create(wanted, { policy });
      assert.ok(receipt.result === 'created');
      const task: ModelTask = {
        id: receipt.task.id,
        conversation,
        status: 'init',
        held: false,
        epoch: 0,
        attempts: 0,
        crashes: 0,
        charges: 0,
        position: 0,
        ends: 0,
        claims: [],
      };
      model.tasks.push(task);
      if (conversation === undefined) return;
      const queue = model.queues.get(conversation) ?? [];
      if (policy === 'replace') {
        for (const other of queue) {
          if (hasStarted(other)) other.status = 'cancelling';
          else end(model, other, 'cancelled');
        }
      }
      model.queues.set(conversation, [...(model.queues.get(conversation) ?? []), task]);
    },
  );
}

function claimCommand(i: number): Command {
  return command(`claim(${i})`, exists(i), async (model, { store }) => {
    const task = model.tasks[i]!;
    const claim = await tryClaim(store, task.id, { leaseMs: LEASE_MS });
    if (!isLive(task)) return assert.deepEqual(claim, { result: 'too-late', status: task.status });
    const isNext = task.conversation === undefined || model.queues.get(task.conversation)?.[0] === task;
    if (!isNext) return assert.equal(claim.result, 'waiting');
    if (task.held) return assert.equal(claim.result, 'held');
    const isSuspect = task.status === 'init' && task.attempts >= LIMITS.suspectAttempts;
    if (isSuspect && task.charges >= MAX_ATTEMPTS) {
      end(model, task, 'failed');
      return assert.deepEqual(claim, { result: 'too-late', status: 'failed' });
    }
    assert.ok(claim.result === 'claimed');
    if (task.status === 'init') task.status = 'running';
    task.held = true;
    task.released = undefined;
    task.epoch++;
    task.attempts++;
    task.claims.push(claim.claim);
  });
}

function loadCommand(i: number): Command {
  return command(`load(${i})`, exists(i), async (model, { store }) => {
    const task = model.tasks[i]!;
    const load = await ownedOnly(task.held, store.load(getClaim(task, 0)));
    if (load !== undefined) assert.deepEqual(load.inputs, [1]);
  });
}

function appendCommand(i: number, { ago, progress }: { ago: number; progress: boolean }): Command {
  return command(`append(${i}, -${ago}, ${progress})`, exists(i), async (model, { store }) => {
    const task = model.tasks[i]!;
    const owned = isOwned(task, ago);
    const activity = { turns: task.position + 1, calls: 0 };
    const batch = { after: task.position, events: ['x'], activity, resetsAttempts: progress };
    await ownedOnly(owned, store.append(getClaim(task, ago), batch));
    if (!owned) return;
    if (progress) task.attempts = task.charges = 0;
    task.position++;
    task.isUsed = true;
  });
}

function finishCommand(i: number, { ago, end: asked }: { ago: number; end: FinalStatus }): Command {
  return command(`finish(${i}, -${ago}, ${asked})`, exists(i), async (model, { store }) => {
    const task = model.tasks[i]!;
    const by = getClaim(task, ago);
    const owned = isOwned(task, ago);
    const repeated = task.ends > 0 && by === task.claims.at(-1) && by.epoch === task.epoch;
    const receipt = await ownedOnly(owned || repeated, store.finish(by, { status: asked }));
    if (repeated) assert.deepEqual(receipt, { result: 'unchanged', status: task.status });
    if (!owned) return;
    end(model, task, task.status === 'cancelling' ? 'cancelled' : asked);
    assert.equal(receipt!.status, task.status);
    const next = task.conversation === undefined ? undefined : model.queues.get(task.conversation)?.[0];
    assert.equal(receipt!.successor, next?.id);
  });
}

function cancelCommand(i: number): Command {
  return command(`cancel(${i})`, exists(i), async (model, { store }) => {
    const task = model.tasks[i]!;
    const { result } = await store.cancel({ tenant: TENANT, id: task.id }, {}, { mode: 'kill' });
    if (!isLive(task)) return assert.equal(result, 'too-late');
    if (task.status === 'cancelling') assert.ok(result === 'unchanged' || result === 'escalated');
    else assert.equal(result, 'accepted');
    if (hasStarted(task)) task.status = 'cancelling';
    else end(model, task, 'cancelled');
  });
}

function releaseCommand(i: number, ago: number): Command {
  return command(`release(${i}, -${ago})`, exists(i), async (model, { store }) => {
    const task = model.tasks[i]!;
    const by = getClaim(task, ago);
    const owned = isOwned(task, ago);
    const repeated = task.released === by;
    const { lost } = task;
    const late = !repeated && isLive(task) && lost?.claim === by;
    const receipt = await ownedOnly(owned || repeated || late, store.release(by));
    if (receipt !== undefined) assert.equal(receipt.result, owned ? 'released' : 'unchanged');
    if (!owned && !late) return;
    if (late) {
      task.crashes--;
      if (task.attempts > Number(task.held)) task.attempts--;
      task.lost = undefined;
      if (lost!.isCharged) task.charges = Math.max(0, task.charges - 1);
    } else {
      reclaim(task);
      task.attempts = Math.max(0, task.attempts - 1);
    }
    task.released = by;
  });
}

/** No worker beats here: every session runs out, and with it goes all that is held. */
function expireCommand(): Command {
  return command(
    'expire',
    () => true,
    async (model, { store, harness }) => {
      await expire({ store, advance: (ms) => harness.advance(ms) }, LEASE_MS);
      await harness.advance(LIMITS.maxCrashBackoffMs);
      for (const task of model.tasks) {
        if (!task.held) continue;
        const isCharged = task.status === 'running' && task.attempts > LIMITS.suspectAttempts;
        if (isCharged) task.charges++;
        task.lost = { claim: task.claims.at(-1)!, isCharged };
        task.crashes++;
        const isLost = task.status === 'running' && task.crashes >= LIMITS.maxCrashes;
        reclaim(task);
        if (isLost) end(model, task, 'failed');
      }
    },
  );
}

async function ownedOnly<T>(owned: boolean, work: Promise<T>): Promise<T | undefined> {
  if (owned) return work;
  await assert.rejects(work, { code: 'LEASE_LOST' });
  return undefined;
}

/** What the store says now, compared with what it should say. */
async function compare(model: Model, { store }: Real): Promise<void> {
  const live = new Map<string, number>();
  for (const task of model.tasks) {
    const record = await store.get({ tenant: TENANT, id: task.id });
    const { status, epoch, position, attempts, crashes } = record ?? assert.fail('a task is gone');
    const expected = [task.status, task.epoch, task.position, task.attempts, task.crashes];
    assert.deepEqual([status, epoch, position, attempts, crashes], expected);
    const did = task.isUsed ? { turns: position, calls: 0 } : undefined;
    assert.deepEqual(record?.activity, did);
    assert.ok(task.ends <= 1);
    if ((status === 'running' || status === 'cancelling') && task.conversation !== undefined) {
      live.set(task.conversation, (live.get(task.conversation) ?? 0) + 1);
    }
  }
  for (const count of live.values()) assert.ok(count <= 1, 'two tasks of one conversation live at once');
}
