import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { systemClock, systemWorld } from '@whoa/core/embed';
import type { NewTask, StoreCancelReceipt, TaskStore } from '@whoa/tasks';
import { whyNoNamespaces } from '../servers/namespaces.ts';
import { createSteppedClock, type SteppedClock } from '../servers/stepped-clock.ts';
import { retryWhileUnavailable } from './ask-until-answered.ts';
import { openTicketOffice, type TicketOffice } from './chaos-bullmq.ts';
import { createLinks, type NetworkLink } from './chaos-network.ts';
import { type ChaosReport, type Life, TENANT } from './chaos-run.ts';
import type { ChaosStore, ChaosStoreKind } from './chaos-stores.ts';
import { verifyChaos } from './chaos-verifier.ts';
import { type Child, startChild, temporaryFolder } from './child.ts';
import { openStore } from './open-store.ts';

const WORKERS = 3;
const CANCELLERS = 2;
/** So many live at once. */
const MAX_LIVES = 300;
const CREATORS = 4;
/** Shards are added after equal parts of the campaign. */
const GROWTHS = 4;
/** So far a clock may be off: twenty leases. */
const CLOCK_MS = 20_000;
/** After the last strike everything ends within this: leases, delays after deaths, ladders. */
const HEAL_MS = 180_000;

/** Lets tasks live while workers, connections and the server fail, and judges every life by what was answered. */
export async function runChaos(
  kind: ChaosStoreKind,
  { lives, random }: { readonly lives: number; readonly random: () => number },
): Promise<ChaosReport> {
  using folder = temporaryFolder();
  using servers = createSteppedClock();
  using workers = createSteppedClock();
  await using location = await kind.open(servers);
  const whyNoCables = location.network ? whyNoNamespaces() : undefined;
  const cabled = whyNoCables === undefined ? location.network?.address : undefined;
  await using cables = await createLinks(cabled, WORKERS, location.front);
  await using chaos = new Chaos({
    location,
    cables: cables.all,
    clocks: { servers, workers },
    log: `${folder.path}/log.jsonl`,
    random,
    lives,
  });
  const started = performance.now();
  await chaos.play();
  const seconds = Math.round((performance.now() - started) / 1_000);
  const judged = await verifyChaos({ store: chaos.store, lives: chaos.lives, log: chaos.log });
  return {
    ...judged,
    lives: chaos.lives.size,
    seconds,
    strikes: chaos.strikes,
    cannot: { ...location.cannot, ...(whyNoCables !== undefined && { 'cut off': whyNoCables }) },
    violations: [...chaos.violations, ...judged.violations],
  };
}

interface ChaosOptions {
  readonly location: ChaosStore;
  readonly cables: readonly NetworkLink[];
  readonly clocks: { readonly servers: SteppedClock; readonly workers: SteppedClock };
  readonly lives: number;
  readonly log: string;
  readonly random: () => number;
}

class Chaos implements AsyncDisposable {
  readonly lives = new Map<string, Life>();
  readonly strikes: Record<string, number> = {};
  readonly violations: string[] = [];
  readonly log: string;
  readonly #options: ChaosOptions;
  readonly #open = new Set<string>();
  readonly #stores: TaskStore[] = [];
  readonly #office: TicketOffice | undefined;
  #workers: Child[];
  readonly #cancellers: Child[];
  #asked = 0;
  #answered = 0;
  #started = 0;
  #isOver = false;

  constructor(options: ChaosOptions) {
    this.#options = options;
    this.log = options.log;
    const { front } = options.location;
    this.#office = front && openTicketOffice(front);
    this.#openStore();
    this.#workers = Array.from({ length: WORKERS }, (_, position) => this.#startWorker(position));
    this.#cancellers = Array.from({ length: CANCELLERS }, () => this.#startCanceller());
  }

  /** As whoever knows all shards sees it. */
  get store(): TaskStore {
    return this.#stores.at(-1)!;
  }

  async play(): Promise<void> {
    const { lives, clocks } = this.#options;
    await Promise.all(this.#cancellers.map((one) => one.hear<{ type: string }>(({ type }) => type === 'ready')));
    const striking = this.#strikeOn();
    const looking = this.#lookOn();
    const create = async (): Promise<void> => {
      while (this.lives.size < lives) {
        await this.#create();
        while (this.#open.size >= MAX_LIVES) await wait(5);
      }
    };
    await Promise.all(Array.from({ length: CREATORS }, create));
    this.#isOver = true;
    await striking;
    clocks.servers.setAhead(0);
    clocks.workers.setAhead(0);
    for (const { process } of this.#workers) process.kill('SIGCONT');
    const until = performance.now() + HEAL_MS;
    while ((this.#open.size > 0 || this.#answered < this.#asked) && performance.now() < until) await wait(50);
    if (this.#answered < this.#asked)
      this.violations.push(`${this.#asked - this.#answered} cancels were never answered`);
    for (const id of this.#open) this.violations.push(`${id}: it never ended`);
    this.#open.clear();
    await looking;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#workers, ...this.#cancellers].map((child) => child[Symbol.asyncDispose]()));
    await this.#office?.[Symbol.asyncDispose]();
    await Promise.all(this.#stores.map((store) => store[Symbol.asyncDispose]()));
  }

  #openStore(): void {
    const { location, clocks } = this.#options;
    // A store in a file goes by the clock of whoever uses it.
    const clock = { ...systemClock, now: () => Date.now() + clocks.workers.aheadMs };
    const store = openStore(location.location, { maxAttempts: 10_000, world: { ...systemWorld, clock } });
    this.#stores.push(this.#office?.inFrontOf(store) ?? store);
  }

  #startWorker(position: number): Child {
    const { location, log, clocks, cables } = this.#options;
    const { env } = clocks.workers;
    const cable = cables[position];
    const its = cable ? location.network!.locationAt(cable.proxy.address) : location.location;
    const inside = cable?.namespace.inside ?? [];
    const front = cable?.front?.address ?? location.front;
    const queue = front === undefined ? [] : [JSON.stringify(front)];
    return startChild('chaos-worker', [its, log, `worker-${++this.#started}`, ...queue], { env, inside });
  }

  #startCanceller(): Child {
    const { location, clocks } = this.#options;
    const child = startChild('chaos-canceller', [location.location], { env: clocks.workers.env });
    child.process.on('message', (message: { id?: string; receipt?: StoreCancelReceipt; error?: string }) => {
      if (message.id === undefined) return;
      this.#answered++;
      if (message.receipt !== undefined) this.lives.get(message.id)!.receipts.push(message.receipt);
      else this.violations.push(`${message.id}: a cancel was answered ${message.error}`);
    });
    return child;
  }

  async #create(): Promise<void> {
    const [fails, steps] = [this.#isOneIn(8), 1 + this.#below(5)];
    const task: NewTask = { tenant: TENANT, agent: 'job', input: { steps, fails }, ...this.#where() };
    const policy = this.#pick(['replace', 'queue', 'queue', 'steer', 'reject'] as const);
    const nonce = randomUUID();
    const receipt = await this.#retryWhileUnavailable((store) => store.create(task, { policy, nonce }));
    if (receipt.result !== 'created') return;
    const { id } = receipt.task;
    const isConversation = receipt.task.conversation !== undefined;
    // Not by the stage of the receipt: a creation whose answer was lost is answered with the task as it is by then.
    const mayBeRejected = isConversation && policy === 'reject' && (task.debounceMs ?? 0) > 0;
    this.lives.set(id, { task: receipt.task, fails, isConversation, mayBeRejected, asked: 0, receipts: [] });
    this.#open.add(id);
    if (this.#isOneIn(3)) this.#cancel(id);
  }

  #where(): Partial<NewTask> {
    if (this.#isOneIn(3))
      return { conversation: `c${this.#below(40)}`, ...(this.#isOneIn(4) && { debounceMs: this.#below(100) }) };
    return { priority: this.#below(3), ...(this.#isOneIn(6) && { notBefore: Date.now() + this.#below(500) }) };
  }

  #cancel(id: string): void {
    const mode = this.#pick(['graceful', 'now', 'kill'] as const);
    const times = this.#isOneIn(4) ? 2 : 1;
    for (let i = 0; i < times; i++) {
      this.#asked++;
      this.lives.get(id)!.asked++;
      const canceller = this.#pick(this.#cancellers);
      const afterMs = this.#below(400);
      const asking = wait(afterMs).then(() => canceller.process.send({ ref: { tenant: TENANT, id }, mode }));
      asking.catch((error: unknown) => this.violations.push(`${id}: ${String(error)}`));
    }
  }

  /** Looks at what lives, until nothing does. */
  async #lookOn(): Promise<void> {
    while (!this.#isOver || this.#open.size > 0) {
      for (const id of this.#open) {
        const task = await this.#retryWhileUnavailable((store) => store.get({ tenant: TENANT, id }));
        if (task !== undefined && task.endedAt === undefined) continue;
        this.#open.delete(id);
        if (task === undefined) this.violations.push(`${id}: it is gone`);
        else this.lives.get(id)!.ended = task as NonNullable<Life['ended']>;
      }
      await wait(20);
    }
  }

  async #strikeOn(): Promise<void> {
    const { location, clocks, cables } = this.#options;
    const strikes: Record<string, () => Promise<void>> = {
      'kill a worker': () => this.#endWorker(this.#below(WORKERS), 'SIGKILL'),
      'kill another': () => this.#endWorker(this.#below(WORKERS), 'SIGKILL'),
      'hand over': () => this.#endWorker(this.#below(WORKERS), 'SIGTERM'),
      'stop a worker past its lease': () => this.#stopWorker(),
      'step the clock of the servers': () => this.#step(clocks.servers),
      'step the clock of the workers': () => this.#step(clocks.workers),
      ...(cables.length > 0 && { 'cut a worker off past its lease': () => this.#cutOff() }),
      ...location.faults,
    };
    for (let grown = 1; !this.#isOver; ) {
      const isTimeToGrow = this.lives.size > (this.#options.lives * grown) / GROWTHS;
      if (isTimeToGrow) grown++;
      const name = isTimeToGrow && location.grow?.() ? 'grow the shards' : this.#pick(Object.keys(strikes));
      this.strikes[name] = (this.strikes[name] ?? 0) + 1;
      await (strikes[name] ?? (() => this.#moveAll()))();
      await wait(200 + this.#below(600));
    }
  }

  #step(clock: SteppedClock): Promise<void> {
    clock.setAhead(this.#below(2 * CLOCK_MS) - CLOCK_MS);
    return Promise.resolve();
  }

  /** Everybody is told of the shards that there are now; workers one after the other, as they are replaced. */
  async #moveAll(): Promise<void> {
    this.#openStore();
    for (const { process } of this.#cancellers) process.send({ location: this.#options.location.location });
    for (let victim = 0; victim < WORKERS; victim++) await this.#endWorker(victim, 'SIGTERM');
  }

  /** Whoever is refused because shards were added asks the store that knows of them. */
  #retryWhileUnavailable<T>(ask: (store: TaskStore) => Promise<T>): Promise<T> {
    return retryWhileUnavailable(() => ask(this.store), { isGrowing: true });
  }

  async #endWorker(victim: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const worker = this.#workers[victim]!;
    // One that still starts would not hear it, and nothing of it would be lost.
    const { type } = await worker.hear<{ type: string }>(({ type: said }) => said === 'serving' || said === 'refused');
    worker.process.kill(type === 'refused' ? 'SIGKILL' : signal);
    await worker.ended;
    this.#workers = this.#workers.with(victim, this.#startWorker(victim));
  }

  async #stopWorker(): Promise<void> {
    const { process } = this.#pick(this.#workers);
    process.kill('SIGSTOP');
    await wait(1_500 + this.#below(1_000));
    process.kill('SIGCONT');
  }

  /** Its packets vanish, and those to it: it finds out by itself that it has lost its tasks, and goes on afterwards. */
  async #cutOff(): Promise<void> {
    const { namespace } = this.#pick(this.#options.cables);
    namespace.cut();
    await wait(1_500 + this.#below(3_000));
    namespace.mend();
  }

  #below(limit: number): number {
    return Math.floor(this.#options.random() * limit);
  }

  #isOneIn(times: number): boolean {
    return this.#below(times) === 0;
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#below(from.length)]!;
  }
}
