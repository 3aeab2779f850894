import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { systemClock, systemWorld } from '@whoa/core/embed';
import type { NewTask, StoreCancelReceipt, TaskStore } from '@whoa/tasks';
import { whyNoNamespaces } from '../servers/namespaces.ts';
import { createSteppedClock, type SteppedClock } from '../servers/stepped-clock.ts';
import { retryWhileUnavailable } from './ask-until-answered.ts';
import { openTicketOffice, type TicketOffice } from './chaos-bullmq.ts';
import { createLinks, type NetworkLink } from './chaos-network.ts';
import { type ChaosReport, type ChaosRun, TENANT } from './chaos-run.ts';
import type { ChaosStore, ChaosStoreKind } from './chaos-stores.ts';
import { verifyChaos } from './chaos-verifier.ts';
import { type Child, startChild, temporaryFolder } from './child.ts';
import { openStore } from './open-store.ts';

const WORKERS = 3;
const CANCELLERS = 2;
/** The most tasks that may be open at a time. */
const MAX_OPEN_RUNS = 300;
const CREATORS = 4;
/** So far a clock may be off: twenty leases. */
const CLOCK_MS = 20_000;
/** After the last strike everything ends within this: leases, delays after deaths, ladders. */
const HEAL_MS = 180_000;
/** What has not ended by then waits for the longest of its bounds. */
const HEAL_EARLY_MS = 60_000;

/** Runs tasks while workers, connections and the server fail, then verifies each task against the receipts it got. */
export async function runChaos(
  kind: ChaosStoreKind,
  { runs, random }: { readonly runs: number; readonly random: () => number },
): Promise<ChaosReport> {
  using folder = temporaryFolder();
  using servers = createSteppedClock();
  using workers = createSteppedClock();
  await using location = await kind.open(servers);
  const whyNoNetwork = location.network ? whyNoNamespaces() : undefined;
  const networkAddress = whyNoNetwork === undefined ? location.network?.address : undefined;
  await using links = await createLinks(networkAddress, WORKERS, location.front ?? location.bus);
  await using chaos = new Chaos({
    location,
    links: links.all,
    clocks: { servers, workers },
    log: `${folder.path}/log.jsonl`,
    random,
    runs,
  });
  const started = performance.now();
  await chaos.run();
  const seconds = Math.round((performance.now() - started) / 1_000);
  const verified = await verifyChaos({ store: chaos.store, runs: chaos.runs, log: chaos.log });
  return {
    ...verified,
    runs: chaos.runs.size,
    seconds,
    healSeconds: chaos.healSeconds,
    waitedLonger: chaos.waitedLonger,
    strikes: chaos.strikes,
    cannot: { ...location.cannot, ...(whyNoNetwork !== undefined && { 'cut off': whyNoNetwork }) },
    violations: [...chaos.violations, ...verified.violations],
  };
}

interface ChaosOptions {
  readonly location: ChaosStore;
  readonly links: readonly NetworkLink[];
  readonly clocks: { readonly servers: SteppedClock; readonly workers: SteppedClock };
  readonly runs: number;
  readonly log: string;
  readonly random: () => number;
}

class Chaos implements AsyncDisposable {
  readonly runs = new Map<string, ChaosRun>();
  readonly strikes: Record<string, number> = {};
  readonly violations: string[] = [];
  /** How long after the last fault the last run ended, and how many waited until the clock moved. */
  healSeconds = 0;
  waitedLonger = 0;
  readonly log: string;
  readonly #options: ChaosOptions;
  readonly #open = new Set<string>();
  readonly store: TaskStore;
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
    this.store = this.#openStore();
    this.#workers = Array.from({ length: WORKERS }, (_, position) => this.#startWorker(position));
    this.#cancellers = Array.from({ length: CANCELLERS }, () => this.#startCanceller());
  }

  async run(): Promise<void> {
    const { runs, clocks, location } = this.#options;
    await Promise.all(this.#cancellers.map((one) => one.hear<{ type: string }>(({ type }) => type === 'ready')));
    const injecting = this.#injectFaults();
    const polling = this.#pollOpen();
    const create = async (): Promise<void> => {
      while (this.runs.size < runs) {
        await this.#create();
        while (this.#open.size >= MAX_OPEN_RUNS) await wait(5);
      }
    };
    await Promise.all(Array.from({ length: CREATORS }, create));
    this.#isOver = true;
    await injecting;
    clocks.servers.setAhead(0);
    clocks.workers.setAhead(0);
    for (const { process } of this.#workers) process.kill('SIGCONT');
    const healing = performance.now();
    const until = healing + HEAL_MS;
    const early = healing + (location.healAheadMs === undefined ? 0 : HEAL_EARLY_MS);
    while ((this.#open.size > 0 || this.#answered < this.#asked) && performance.now() < early) await wait(50);
    if (this.#open.size > 0) clocks.servers.setAhead(location.healAheadMs ?? 0);
    this.waitedLonger = this.#open.size;
    while ((this.#open.size > 0 || this.#answered < this.#asked) && performance.now() < until) await wait(50);
    this.healSeconds = Math.round((performance.now() - healing) / 1_000);
    if (this.#answered < this.#asked)
      this.violations.push(`${this.#asked - this.#answered} cancels were never answered`);
    for (const id of this.#open) this.violations.push(`${id}: it never ended`);
    this.#open.clear();
    await polling;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#workers, ...this.#cancellers].map((child) => child[Symbol.asyncDispose]()));
    await this.#office?.[Symbol.asyncDispose]();
    await this.store[Symbol.asyncDispose]();
  }

  #openStore(): TaskStore {
    const { location, clocks } = this.#options;
    // A store in a file uses the clock of its process.
    const clock = { ...systemClock, now: () => Date.now() + clocks.workers.aheadMs };
    const store = openStore(location.location, { maxAttempts: 10_000, world: { ...systemWorld, clock } });
    return this.#office?.placeBefore(store) ?? store;
  }

  #startWorker(position: number): Child {
    const { location, log, clocks, links } = this.#options;
    const { env } = clocks.workers;
    const link = links[position];
    const its = link
      ? location.network!.locationAt(link.proxy.address, location.bus && link.front?.address)
      : location.location;
    const inside = link?.namespace.inside ?? [];
    const front = location.front && (link?.front?.address ?? location.front);
    const queue = front === undefined ? [] : [JSON.stringify(front)];
    return startChild('chaos-worker', [its, log, `worker-${++this.#started}`, ...queue], { env, inside });
  }

  #startCanceller(): Child {
    const { location, clocks } = this.#options;
    const child = startChild('chaos-canceller', [location.location], { env: clocks.workers.env });
    child.process.on('message', (message: { id?: string; receipt?: StoreCancelReceipt; error?: string }) => {
      if (message.id === undefined) return;
      this.#answered++;
      if (message.receipt !== undefined) this.runs.get(message.id)!.receipts.push(message.receipt);
      else this.violations.push(`${message.id}: a cancel was answered ${message.error}`);
    });
    return child;
  }

  async #create(): Promise<void> {
    const [fails, steps] = [this.#isOneIn(8), 1 + this.#below(5)];
    const task: NewTask = { tenant: TENANT, agent: 'job', input: { steps, fails }, ...this.#where() };
    const policy = this.#pick(['replace', 'queue', 'queue', 'steer', 'reject'] as const);
    const nonce = randomUUID();
    const receipt = await retryWhileUnavailable(() => this.store.create(task, { policy, nonce }));
    if (receipt.result !== 'created') return;
    const { id } = receipt.task;
    const isConversation = receipt.task.conversation !== undefined;
    // Not by the stage in the receipt: if the response to a creation was lost, the next one shows the task as it is by then.
    const mayBeRejected = isConversation && policy === 'reject' && (task.debounceMs ?? 0) > 0;
    this.runs.set(id, { task: receipt.task, fails, isConversation, mayBeRejected, asked: 0, receipts: [] });
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
      this.runs.get(id)!.asked++;
      const canceller = this.#pick(this.#cancellers);
      const afterMs = this.#below(400);
      const asking = wait(afterMs).then(() => canceller.process.send({ ref: { tenant: TENANT, id }, mode }));
      asking.catch((error: unknown) => this.violations.push(`${id}: ${String(error)}`));
    }
  }

  /** Polls open tasks until none are left. */
  async #pollOpen(): Promise<void> {
    while (!this.#isOver || this.#open.size > 0) {
      for (const id of this.#open) {
        const task = await retryWhileUnavailable(() => this.store.get({ tenant: TENANT, id }));
        if (task !== undefined && task.endedAt === undefined) continue;
        this.#open.delete(id);
        if (task === undefined) this.violations.push(`${id}: it is gone`);
        else this.runs.get(id)!.ended = task as NonNullable<ChaosRun['ended']>;
      }
      await wait(20);
    }
  }

  async #injectFaults(): Promise<void> {
    const { location, clocks, links } = this.#options;
    const strikes: Record<string, () => Promise<void>> = {
      'kill a worker': () => this.#endWorker(this.#below(WORKERS), 'SIGKILL'),
      'kill another': () => this.#endWorker(this.#below(WORKERS), 'SIGKILL'),
      'hand over': () => this.#endWorker(this.#below(WORKERS), 'SIGTERM'),
      'stop a worker past its lease': () => this.#stopWorker(),
      'step the clock of the servers': () => this.#step(clocks.servers),
      'step the clock of the workers': () => this.#step(clocks.workers),
      ...(links.length > 0 && { 'cut a worker off past its lease': () => this.#cutOff() }),
      ...location.faults,
    };
    while (!this.#isOver) {
      const name = this.#pick(Object.keys(strikes));
      this.strikes[name] = (this.strikes[name] ?? 0) + 1;
      await strikes[name]!();
      await wait(200 + this.#below(600));
    }
  }

  #step(clock: SteppedClock): Promise<void> {
    clock.setAhead(this.#below(2 * CLOCK_MS) - CLOCK_MS);
    return Promise.resolve();
  }

  async #endWorker(victim: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const worker = this.#workers[victim]!;
    // A worker that is still starting would miss the signal, and lose nothing.
    const { type } = await worker.hear<{ type: string }>(({ type: one }) => one === 'serving' || one === 'refused');
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

  /**
   * Packets in both directions vanish: the worker notices by itself that it has lost its tasks, and continues
   * afterwards.
   */
  async #cutOff(): Promise<void> {
    const { namespace } = this.#pick(this.#options.links);
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
