import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { World } from '@whoa/core/embed';
import type { TaskStore } from '@whoa/tasks';
import type { Violation } from '../../packages/core/src/testing/history.ts';
import type { TakeResult } from '../../packages/tasks/src/delivery/worker-store.ts';

type Tasks = typeof import('@whoa/tasks');

/** Two releases of the tasks package: `after` has a newer format. */
export interface Releases {
  readonly before: Tasks;
  readonly after: Tasks;
}

/** A release, and its store. */
export interface Release {
  readonly tasks: Tasks;
  readonly store: TaskStore;
}

interface UpgradeOptions {
  readonly world: World;
  readonly rules: object;
}

const NEXT_FORMAT = 3;

/** A store that two releases share, and a user who migrates it at any time. */
export class Upgrade implements AsyncDisposable {
  readonly before: Release;
  readonly after: Release;
  readonly violations: Violation[] = [];
  /** The release of workers that start now. */
  starts: 'before' | 'after' = 'before';
  readonly #folder: string = mkdtempSync(join(tmpdir(), 'whoa-simulation-'));
  readonly #file: string = join(this.#folder, 'tasks.db');
  /** Reads the file directly, for verification. */
  readonly #reader: DatabaseSync;
  readonly #older = new Set<string>();
  /** Tasks that were taken after the format was written. */
  readonly #takenAfter = new Set<string>();

  constructor({ before, after }: Releases, { world, rules }: UpgradeOptions) {
    const open = ({ createTaskStore }: Tasks): TaskStore =>
      createTaskStore({ backend: 'sqlite', ...rules, file: this.#file, world });
    // In this order, because a new store gets the format of the release that creates it.
    this.before = { tasks: before, store: this.#judged(open(before), 'before') };
    this.after = { tasks: after, store: this.#judged(open(after), 'after') };
    this.#reader = new DatabaseSync(this.#file, { readOnly: true });
    if (this.#format() === NEXT_FORMAT) this.#broken('P1', 'the next format is there without a finish');
  }

  /** Returns the release of a worker that starts. */
  starting(worker: string): Release {
    if (this.starts === 'before') this.#older.add(worker);
    return this[this.starts];
  }

  isOlder(worker: string): boolean {
    return this.#older.has(worker);
  }

  async migrate(mode: 'prepare' | 'finish'): Promise<void> {
    if (this.#format() < NEXT_FORMAT) this.#checkBeforeFinish();
    await this.after.tasks.migrateStore({ backend: 'sqlite', file: this.#file }, mode).catch(({ message }: Error) => {
      this.#broken('P2', `a migration failed: ${message}`);
    });
  }

  async judge(): Promise<void> {
    await this.migrate('finish');
    const rows = this.#reader.prepare('SELECT id, mark FROM tasks').all() as { id: string; mark: string | null }[];
    for (const { id, mark } of rows) {
      if (this.#takenAfter.has(id) && mark !== 'two') this.#broken('P1', `${id}: it was taken in the old format`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#reader.close();
    for (const { store } of [this.before, this.after]) await store[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true });
  }

  /** Nothing may be written in the new format before the finish. */
  #checkBeforeFinish(): void {
    const early = this.#reader.prepare("SELECT id FROM tasks WHERE mark = 'two'").all() as { id: string }[];
    for (const { id } of early) this.#broken('P1', `${id}: it is in the new format before the finish`);
  }

  /** The store as a release sees it. The older one is rejected after the finish, and no release before it. */
  #judged(store: TaskStore, release: 'before' | 'after'): TaskStore {
    return new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        if (name === 'watch' || typeof name === 'symbol') return value.bind(target) as unknown;
        return (...args: unknown[]) => this.#call(release, name, () => value.apply(target, args) as Promise<unknown>);
      },
    });
  }

  async #call(release: 'before' | 'after', name: string, call: () => Promise<unknown>): Promise<unknown> {
    const isNew = this.#format() === NEXT_FORMAT;
    try {
      const answer = await call();
      if (isNew && release === 'before') this.#broken('P10', `a process of the older release was served: ${name}`);
      if (isNew && release === 'after' && name === 'take') this.#took(answer as TakeResult);
      return answer;
    } catch (error) {
      const isSetup = (error as Error).name === 'StoreSetupError';
      if (isSetup && (release === 'after' || this.#format() < NEXT_FORMAT)) {
        this.#broken('P2', `${name} was refused: ${(error as Error).message}`);
      }
      if ((error as { code?: string }).code === 'ERR_SQLITE_ERROR') {
        this.#broken('P2', `${name} of the release ${release} failed: ${(error as Error).message}`);
      }
      throw error;
    }
  }

  #took(answer: TakeResult): void {
    if (answer.result !== 'taken' || answer.isRepeat) return;
    for (const { claim } of answer.tasks) this.#takenAfter.add(claim.id);
  }

  #format(): number {
    return Number(this.#reader.prepare('PRAGMA user_version').get()?.['user_version']);
  }

  #broken(promise: Violation['promise'], what: string): void {
    this.violations.push({ promise, what });
  }
}
