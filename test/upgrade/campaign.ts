import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { TaskSummary } from '@whoa/tasks';
import { type ChaosRun, TENANT } from '../tasks/chaos-run.ts';
import { verifyChaos } from '../tasks/chaos-verifier.ts';
import { type Child, startProgram, temporaryFolder } from '../tasks/child.ts';
import type { SharedStoreKind } from '../tasks/shared-stores.ts';
import { type Client, startClient } from './client.ts';
import { migrate } from './migrate.ts';
import { type Release, thisRelease } from './next-release.ts';

export interface UpgradeReport {
  readonly tasks: number;
  readonly ends: Record<string, number>;
  readonly takenAgain: number;
  readonly entries: number;
  readonly seconds: number;
  readonly violations: readonly string[];
}

/** Rolls workers from one release to the next, back, and half-way again, under tasks that run all the time; finishes. */
export async function runUpgrade(
  kind: SharedStoreKind,
  { tasks, next }: { readonly tasks: number; readonly next: Release },
): Promise<UpgradeReport> {
  const started = performance.now();
  using folder = temporaryFolder();
  await using opened = await kind.open();
  const { location } = opened;
  const old = await startClient(thisRelease, location);
  await old.store.counts({ tenant: TENANT });
  const fresh = await startClient(next, location);
  await using upgrade = new Upgrade({ location, folder: folder.path, tasks, clients: [old, fresh], next });
  await upgrade.run();
  const verified = await verifyChaos({ store: fresh.store, runs: upgrade.runs, log: upgrade.log });
  const seconds = Math.round((performance.now() - started) / 1_000);
  return {
    tasks: upgrade.runs.size,
    ends: verified.ends,
    takenAgain: verified.takenAgain,
    entries: verified.entries,
    seconds,
    violations: [...upgrade.violations, ...verified.violations],
  };
}

interface UpgradeOptions {
  readonly location: string;
  readonly folder: string;
  readonly tasks: number;
  readonly next: Release;
  /** Of this release, and of the next. */
  readonly clients: readonly [Client, Client];
}

/** How many tasks may run, not counting those that are held all the time. */
const ROOM = 50;
const WORKERS = 2;
const ENDS_MS = 120_000;
/** Between two short tasks. */
const LOAD_MS = 10;

class Upgrade implements AsyncDisposable {
  readonly runs = new Map<string, ChaosRun>();
  readonly violations: string[] = [];
  readonly log: string;
  readonly #options: UpgradeOptions;
  readonly #held = new Set<string>();
  #workers: Child[] = [];
  #others: Child[] = [];
  #clients: readonly Client[];
  #started = 0;
  #isOver = false;

  constructor(options: UpgradeOptions) {
    this.#options = options;
    this.#clients = options.clients;
    this.log = join(options.folder, 'log.jsonl');
  }

  async run(): Promise<void> {
    const { tasks, next, clients } = this.#options;
    this.#workers = Array.from({ length: WORKERS }, () => this.#startWorker(thisRelease));
    const idle = this.#startWorker(thisRelease, { name: 'idle-worker', agent: 'nothing' });
    this.#others.push(idle);
    await Promise.all(Array.from({ length: tasks }, (_, i) => this.#create(this.#clients[i % 2]!, 'long')));
    await this.#allRun();
    const [first, second] = [...this.#held];
    const followed = [clients[0].follow(this.#ref(first!)), clients[1].follow(this.#ref(second!))];
    const load = this.#loadOn();
    await this.#roll(next);
    await this.#migrate([], 1);
    for (const [i, id] of [...this.#held].slice(0, tasks / 10).entries()) await this.#cancel(this.#clients[i % 2]!, id);
    await this.#roll(thisRelease);
    await this.#roll(next, 1);
    await this.#finish(idle);
    for (const { process } of this.#workers) process.send('let them end');
    this.#isOver = true;
    await load;
    await this.#until('all tasks have ended', async () => (await this.#live()) === 0);
    for (const positions of await Promise.all(followed)) {
      if (positions.some((position, i) => position !== i + 1)) this.violations.push(`followed ${positions.join()}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    const all = [...this.#workers, ...this.#others, ...this.#options.clients];
    await Promise.all(all.map((one) => one[Symbol.asyncDispose]()));
  }

  /** Replaces workers one by one: one hands its tasks over, the next is killed. */
  async #roll(release: Release, count = WORKERS): Promise<void> {
    for (const [index, worker] of this.#workers.slice(0, count).entries()) {
      await worker.hear<{ type: string }>(({ type }) => type === 'serving');
      worker.process.kill(index % 2 === 0 ? 'SIGTERM' : 'SIGKILL');
      await worker.ended;
      this.#workers = this.#workers.with(index, this.#startWorker(release));
    }
    await this.#allRun();
  }

  async #migrate(args: readonly string[], format: number): Promise<void> {
    const { code, said } = await migrate(this.#options.next, this.#options.location, [...args, '--json']);
    const isDone = said.includes(`"format":${format},"missing":[]`);
    if (code !== 0 || !isDone) this.violations.push(`migrate: ${code} ${said}`);
  }

  /** Finishes under a worker of the older release that holds tasks: they are taken over. */
  async #finish(idle: Child): Promise<void> {
    const { clients } = this.#options;
    const [newer, older] = this.#workers as [Child, Child];
    await this.#migrate(['--finish'], 2);
    this.#clients = [clients[1]];
    this.#workers = [newer];
    const late = this.#startWorker(thisRelease, { name: 'late-worker' });
    this.#others.push(older, late);
    // Every process of the older release gets this error: connected, idle, working, and new.
    const told = /has format 3, and this version of Whoa uses format 2; update Whoa/;
    const answer = await clients[0].store.list({ tenant: TENANT }).then(
      () => 'a list',
      ({ message }: Error) => message,
    );
    if (!told.test(answer)) this.violations.push(`told: ${answer}`);
    for (const worker of [idle, older, late])
      await worker.hear<{ error?: string }>(({ error = '' }) => told.test(error));
    await this.#allRun();
  }

  /** Tasks come, end and are cancelled all the time, through processes of either release. */
  async #loadOn(): Promise<void> {
    for (let i = 0; !this.#isOver; i++) {
      const client = this.#clients[i % this.#clients.length]!;
      const { task } = await this.#create(client, 'short');
      if (i % 3 === 0) await this.#cancel(client, task.id);
      await wait(LOAD_MS);
    }
  }

  async #create(client: Client, input: 'long' | 'short'): Promise<ChaosRun> {
    try {
      const receipt = await client.store.create({ tenant: TENANT, agent: 'job', input });
      if (receipt.result !== 'created') throw new Error(receipt.result);
      const run: ChaosRun = {
        task: receipt.task,
        fails: false,
        isConversation: false,
        mayBeRejected: false,
        asked: 0,
        receipts: [],
      };
      this.runs.set(receipt.task.id, run);
      if (input === 'long') this.#held.add(receipt.task.id);
      return run;
    } catch (error) {
      // A process of this release that was caught by the finish: the next one does it.
      const [, last] = this.#options.clients;
      if ((error as { code?: string }).code !== 'STORE_SETUP' || client === last) throw error;
      return this.#create(last, input);
    }
  }

  async #cancel(client: Client, id: string): Promise<void> {
    const run = this.runs.get(id)!;
    run.asked++;
    this.#held.delete(id);
    try {
      run.receipts.push(await client.store.cancel(this.#ref(id), { by: 'chaos' }, { mode: 'now' }));
    } catch (error) {
      const [, last] = this.#options.clients;
      if ((error as { code?: string }).code !== 'STORE_SETUP' || client === last) throw error;
      await this.#cancel(last, id);
    }
  }

  #ref(id: string): { tenant: string; id: string } {
    return { tenant: TENANT, id };
  }

  async #live(): Promise<number> {
    const { statuses } = await this.#options.clients[1].store.counts({ tenant: TENANT });
    return statuses.init + statuses.running + statuses.cancelling;
  }

  #names(): string[] {
    return this.#workers.map((_, i) => `worker-${this.#started - i}`);
  }

  async #running(): Promise<readonly TaskSummary[]> {
    const filter = { tenant: TENANT, status: 'running', limit: 10_000 } as const;
    return (await this.#options.clients[1].store.list(filter)).tasks;
  }

  /** Every task that is to be held is held by a worker that is alive. */
  async #allRun(): Promise<void> {
    await Promise.all(this.#workers.map((one) => one.hear<{ type: string }>(({ type }) => type === 'serving')));
    const names = this.#names();
    await this.#until('all tasks run', async () => {
      const running = await this.#running();
      const held = new Set(running.filter(({ worker }) => names.includes(worker ?? '')).map(({ id }) => id));
      return [...this.#held].every((id) => held.has(id));
    });
  }

  async #until(what: string, isSo: () => Promise<boolean>): Promise<void> {
    const until = performance.now() + ENDS_MS;
    while (!(await isSo())) {
      if (performance.now() > until) throw new Error(`${what}: not within ${ENDS_MS} ms`);
      await wait(50);
    }
  }

  #startWorker({ folder }: Release, { name = `worker-${++this.#started}`, agent = 'job' } = {}): Child {
    const { location, tasks } = this.#options;
    const args = [location, this.log, name, `${tasks + ROOM}`, agent];
    return startProgram(join(folder, 'test/upgrade/children/store-worker.ts'), args);
  }
}
