import type { TaskRecord } from '@whoa/tasks';
import type { ClaimRef } from '@whoa/tasks/store';
import type { Violation } from '../../packages/core/src/testing/history.ts';
import type { TakenTask } from '../../packages/tasks/src/delivery/worker-store.ts';
import type { SimulationContext } from './context.ts';
import type { Commit } from './network.ts';

const CHAT = { tenant: 'acme', conversation: 'chat' } as const;
/** How long after a stop the next message may come. */
const WHILE_STOPPING_MS = 300;

/**
 * A chat that is stopped and continues: messages under every policy, stops of one reply and of everything, and what
 * follows.
 */
export class ChatScenario {
  readonly #context: SimulationContext;
  /** Tasks of the chat, in the order in which the store created them. */
  readonly #order: string[] = [];
  /** How many of these tasks each stop of everything covers, by who stopped. */
  readonly #reached = new Map<string, number>();
  /** The tasks that were stopped, by who stopped them. */
  readonly #stopped = new Map<string, Set<string>>();
  /** The order in which they started. */
  readonly #startedIn: string[] = [];
  #isQueue = false;
  #messages = 0;
  #stops = 0;

  constructor(context: SimulationContext) {
    this.#context = context;
  }

  plan(): void {
    const { random, workMs } = this.#context;
    this.#isQueue = random.oneIn(3);
    const count = 2 + random.below(3);
    for (let i = 0; i < count; i++) this.#context.userAt(random.below(workMs), () => this.#say());
    const stops = random.below(3);
    for (let i = 0; i < stops; i++) this.#context.userAt(random.below(workMs + 2_000), () => this.#stop());
  }

  committed({ name, args, answer, error }: Commit): void {
    if (error !== undefined) return;
    if (name === 'create') this.#created(answer as { result: string; task?: TaskRecord });
    if (name === 'cancel')
      this.#cancelled(args[0] as { id?: string; conversation?: string }, args[1] as { by?: string });
    if (name === 'take') for (const { claim } of (answer as { tasks?: TakenTask[] }).tasks ?? []) this.#began(claim.id);
    if (name === 'claim') this.#began((answer as { claim?: ClaimRef }).claim?.id ?? '');
  }

  async judge(): Promise<void> {
    const { store } = this.#context;
    const record = await store.conversation(CHAT);
    const left = [record?.current, record?.debouncing, ...(record?.waiting ?? [])].filter((id) => id !== undefined);
    if (left.length > 0) this.#broken('P2', `the chat still has ${left.join()}`);
    const history = JSON.stringify(record?.history ?? []);
    for (const [index, id] of this.#order.entries()) {
      const task = await store.get({ tenant: CHAT.tenant, id });
      if (task === undefined) continue;
      this.#judgeStop(task, index);
      const times = history.split(JSON.stringify(task.inputs[0])).length - 1;
      if (times > 1) this.#broken('P6', `${id}: its message stands ${times} times in the history`);
      const isSaid = task.agent === 'assistant' && task.status === 'success';
      if (isSaid && times === 0) this.#broken('P5', `${id}: it was answered, and its message is not in the history`);
    }
    const expected = this.#order.filter((id) => this.#startedIn.includes(id));
    if (this.#isQueue && expected.join() !== this.#startedIn.join()) {
      this.#broken('P8', `messages began as ${this.#startedIn.join()}, and came as ${expected.join()}`);
    }
  }

  /** A stop covers the tasks that existed, or the one it named: never later ones. */
  #judgeStop({ id, outcome }: TaskRecord, index: number): void {
    const by = outcome?.reason?.by;
    if (by === undefined || !by.startsWith('stop')) return;
    const isReached = index < (this.#reached.get(by) ?? 0) || this.#stopped.get(by)?.has(id);
    if (!isReached) this.#broken('P8', `${id}: it was stopped by '${by}', which was about others`);
  }

  async #say(): Promise<void> {
    const { random, client, retryWhileUnavailable } = this.#context;
    const said = `chat ${++this.#messages}`;
    const policy = this.#isQueue ? 'queue' : random.pick(['replace', 'queue', 'steer', 'reject'] as const);
    const agent = random.pick(['assistant', 'assistant', 'long']);
    await retryWhileUnavailable(() =>
      client.create({ ...CHAT, agent, input: said, key: said }, { policy, nonce: said }),
    );
  }

  async #stop(): Promise<void> {
    const { random, client, retryWhileUnavailable } = this.#context;
    const reason = { by: `stop ${++this.#stops}` };
    const mode = random.pick(['graceful', 'now', 'now', 'kill'] as const);
    const isAll = random.oneIn(2);
    if (random.oneIn(2)) this.#context.userAt(random.below(WHILE_STOPPING_MS), () => this.#say());
    if (isAll) {
      await retryWhileUnavailable(() => client.cancel(CHAT, reason, { mode }));
      return;
    }
    const id = (await retryWhileUnavailable(() => client.conversation(CHAT)))?.current;
    if (id === undefined) return;
    await retryWhileUnavailable(() => client.cancel({ tenant: CHAT.tenant, id }, reason, { mode }));
  }

  #created({ result, task }: { result: string; task?: TaskRecord }): void {
    const isOfChat = result === 'created' && task?.conversation === CHAT.conversation;
    if (isOfChat && !this.#order.includes(task.id)) this.#order.push(task.id);
  }

  #cancelled({ id, conversation }: { id?: string; conversation?: string }, { by = '' }: { by?: string } = {}): void {
    if (conversation !== undefined) this.#reached.set(by, this.#order.length);
    if (id !== undefined) this.#stopped.set(by, (this.#stopped.get(by) ?? new Set()).add(id));
  }

  #began(id: string): void {
    if (this.#order.includes(id) && !this.#startedIn.includes(id)) this.#startedIn.push(id);
  }

  #broken(promise: Violation['promise'], what: string): void {
    this.#context.violations.push({ promise, what });
  }
}
