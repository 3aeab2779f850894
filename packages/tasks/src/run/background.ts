import { AsyncLocalStorage } from 'node:async_hooks';
import type { CancelReasonInit } from '@whoa/core';
import { systemWorld, type WorkContext } from '@whoa/core/embed';
import { BACKGROUND, findBackgroundOwner } from '../ledger/rules/background.ts';
import type { ClientStore, StoreCancelReceipt } from '../store.ts';
import type { ConversationRef, TaskRef, TaskResponse, TaskSummary } from '../task.ts';
import type { TaskFunction, TaskHandler } from './work.ts';

/** Work that keeps running. It ends by itself, or when its token is cancelled. */
type BackgroundWork = (context: WorkContext) => Promise<unknown>;

/**
 * Keeps work running after the task that started it has ended. The work becomes a separate task in the same process, so
 * any process can see and stop it. Pass it to the tools and to the runner.
 */
export interface Background {
  /**
   * Starts work on behalf of the calling task, which must not have been stopped. Resolves when the work has started.
   */
  start(work: BackgroundWork, options?: { readonly name?: string }): Promise<TaskRef>;
  /** Returns an id of whose work the caller may see: one per conversation and tenant. */
  owner(): string;
  /** Runs a function as part of a task, so that `start` knows on whose behalf it is called. */
  runInTask<T>(task: StartingTask, work: () => T): T;
  /** The function that a runner runs for background tasks. */
  readonly run: TaskFunction;
  /** How many background tasks run now. They do not count towards the concurrency of a runner. */
  readonly live: number;
}

interface StartingTask {
  readonly task: TaskSummary;
  readonly store: ClientStore;
  /** Runs the started work. */
  readonly runner: { readonly worker: string; runExisting(task: TaskRef): Promise<TaskResponse> };
  /** Keeps the task on this worker until it is disposed: other workers cannot reach what it started. */
  readonly preventParking: () => Disposable;
}

interface HeldBackground {
  readonly work: BackgroundWork;
  readonly isAllowed: Promise<boolean>;
  readonly begin: () => void;
}

const AGENT = 'whoa-background';
const MAX_NAME = 200;

/**
 * Creates a key for a background task of a conversation. A task created under it, for any agent, is stopped with the
 * other background tasks. The task itself must not be in a conversation.
 *
 * @returns A new key.
 */
export function createBackgroundKey(conversation: string): string {
  return `${BACKGROUND}${conversation}/${systemWorld.createId()}`;
}

/**
 * Creates the keeper of work that outlives the task that started it, so that any process can see and stop it. Pass it
 * to the tools and to the runner.
 *
 * @returns The background.
 * @throws Error, from `start`, when it is called outside a task.
 *
 * @example
 * ```ts
 * import { createBackground, createRunner } from '@whoa/tasks';
 * import { createBackgroundProcesses } from '@whoa/tools';
 *
 * const background = createBackground();
 * const processes = createBackgroundProcesses({ containment, registry: background });
 * const runner = createRunner({ store, agents: { assistant: agent }, background });
 * ```
 */
export function createBackground(): Background {
  const current = new AsyncLocalStorage<StartingTask>();
  // Leave the caller's async context: background work is not part of the call and must not ask for approvals in its
  // name.
  const outside = AsyncLocalStorage.snapshot();
  const held = new Map<string, HeldBackground>();
  const starting = (): StartingTask => {
    const found = current.getStore();
    if (found === undefined)
      throw new Error('background: start was called outside a task; pass the same background to the runner');
    return found;
  };
  // What a background task starts belongs to the same conversation.
  const getOwner = (task: TaskSummary): string => task.conversation ?? findBackgroundOwner(task) ?? task.id;

  return {
    async start(work, { name = '' } = {}) {
      const { task, store, runner, preventParking } = starting();
      const [{ tenant, startedBy }, { worker }] = [task, runner];
      const key = createBackgroundKey(getOwner(task));
      const [allowed, started] = [Promise.withResolvers<boolean>(), Promise.withResolvers<'started'>()];
      held.set(key, { work, isAllowed: allowed.promise, begin: () => started.resolve('started') });
      try {
        const input = name.slice(0, MAX_NAME);
        const created = await store.create({ tenant, agent: AGENT, key, input, startedBy, preferredWorker: worker });
        if (!('task' in created))
          throw new Error('background: not started, because too many tasks are waiting; try again later');
        const ref = { tenant, id: created.task.id };
        // Don't move this above the create: a cancel in between would look for background tasks too early to find this
        // one.
        const stopped = (await store.get(task))?.stop?.reason;
        allowed.resolve(stopped === undefined);
        if (stopped !== undefined) {
          await store.cancel(ref, stopped, { mode: 'now' });
          throw new Error('background: not started, because its task was stopped');
        }
        const ended = outside(() => runner.runExisting(ref));
        const here = preventParking();
        const forget = (): void => {
          held.delete(key);
          here[Symbol.dispose]();
        };
        ended.finally(forget).catch(() => {});
        const first = await Promise.race([started.promise, ended]);
        if (first !== 'started') throw new Error(`background: not started; its task is ${first.status}`);
        return ref;
      } catch (error) {
        allowed.resolve(false);
        held.delete(key);
        throw error;
      }
    },
    owner() {
      const { task } = starting();
      return JSON.stringify([task.tenant, getOwner(task)]);
    },
    runInTask: (task, work) => current.run(task, work),
    async run({ task, ...context }) {
      const found = held.get(task.key ?? '');
      if (!(await found?.isAllowed)) throw new Error('The process that ran this work has ended; start the work again');
      found!.begin();
      await found!.work(context);
      context.token.throwIfCancelled();
      return undefined;
    },
    get live() {
      return held.size;
    },
  };
}

interface RunOptions {
  readonly background?: Background | undefined;
  readonly agents: Readonly<Record<string, TaskHandler>>;
}

/** Adds an agent for background tasks to a runner's options. */
export function withBackground<Options extends RunOptions>(options: Options): Options {
  const { background, agents } = options;
  return background === undefined ? options : { ...options, agents: { ...agents, [AGENT]: background.run } };
}

const PAGE = 100;

/**
 * Cancels the background tasks of a conversation, in any process.
 *
 * @returns The receipt of each cancel.
 */
export async function cancelBackground(
  store: ClientStore,
  { tenant, conversation }: ConversationRef,
  reason: CancelReasonInit,
): Promise<readonly StoreCancelReceipt['result'][]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const filter = { tenant, backgroundOf: conversation, limit: PAGE };
    const page = await store.list({ ...filter, ...(cursor !== undefined && { cursor }) });
    ids.push(...page.tasks.filter(({ endedAt }) => endedAt === undefined).map(({ id }) => id));
    cursor = page.next;
  } while (cursor !== undefined);
  return Promise.all(
    Array.from(ids, async (id) => (await store.cancel({ tenant, id }, reason, { mode: 'now' })).result),
  );
}
