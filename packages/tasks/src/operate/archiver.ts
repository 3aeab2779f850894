import { open } from 'node:fs/promises';
import { systemWorld, type World } from '@whoa/core/embed';
import type { TaskStore } from '../store.ts';
import type { JournalEntry, TaskRecord, TaskRef } from '../task.ts';

/** A task as it is archived: one line of JSON in a file. */
export interface ArchivedTask {
  readonly task: TaskRecord;
  readonly journal: readonly JournalEntry[];
}

export interface ArchiverOptions {
  /** A store with `archive: true`. */
  readonly store: TaskStore;
  /**
   * A file to which each task is added as one line of JSON, on disk before the task is removed; or a function that
   * stores it elsewhere. A task is removed when the function's promise resolves. A task whose archiver crashed before
   * it was removed is archived again.
   */
  readonly archive: string | ((task: ArchivedTask, options: { readonly signal: AbortSignal }) => Promise<void>);
  /** How often to look for expired tasks. Defaults to one minute. */
  readonly everyMs?: number;
  /** Called when tasks could not be archived. They are tried again at the next look. */
  readonly onError?: (error: unknown) => void;
  readonly world?: World;
}

/** Archives the ended tasks of a store and removes them. */
export interface Archiver extends AsyncDisposable {
  /** Archives what has expired, now. Returns how many tasks were archived and removed. */
  archiveNow(): Promise<number>;
}

const EVERY_MS = 60_000;
const BATCH = 100;
/** How long a function that ignores its signal is waited for when the archiver is disposed. */
const STOP_MS = 5_000;

/**
 * Moves ended tasks past their retention out of a store with `archive: true`. One archiver per store is enough; several
 * do no harm, but may archive a task twice.
 *
 * @returns The archiver, which works until it is disposed.
 *
 * @example
 * ```ts
 * import { createArchiver, createTaskStore } from '@whoa/tasks';
 *
 * await using store = createTaskStore({ backend: 'sqlite', file: 'tasks.db', archive: true });
 * await using archiver = createArchiver({ store, archive: 'archive.jsonl' });
 * console.log(await archiver.archiveNow());
 * ```
 */
export function createArchiver(options: ArchiverOptions): Archiver {
  return new StoreArchiver(options);
}

class StoreArchiver implements Archiver {
  readonly #options: ArchiverOptions;
  readonly #world: World;
  readonly #stopping = new AbortController();
  #passing: Promise<number> | undefined;
  #timer: Disposable | undefined;

  constructor(options: ArchiverOptions) {
    this.#options = options;
    this.#world = options.world ?? systemWorld;
    this.#lookLater();
  }

  archiveNow(): Promise<number> {
    this.#passing ??= this.#pass().finally(() => (this.#passing = undefined));
    return this.#passing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    this.#timer?.[Symbol.dispose]();
    if (this.#passing === undefined) return;
    const waited = Promise.withResolvers<void>();
    const timer = this.#world.clock.setTimer(STOP_MS, waited.resolve);
    const passed = this.#passing.then(
      () => {},
      () => {},
    );
    await Promise.race([passed, waited.promise]);
    timer[Symbol.dispose]();
  }

  #lookLater(): void {
    const look = (): void => {
      this.archiveNow()
        .catch((error: unknown) => this.#options.onError?.(error))
        .finally(() => {
          if (!this.#stopping.signal.aborted) this.#lookLater();
        });
    };
    this.#timer = this.#world.clock.setTimer(this.#options.everyMs ?? EVERY_MS, look, { keepAlive: false });
  }

  async #pass(): Promise<number> {
    const { store } = this.#options;
    let archived = 0;
    while (!this.#stopping.signal.aborted) {
      const expired = await store.expired({ limit: BATCH });
      const failures: unknown[] = [];
      for (const ref of expired) {
        if (this.#stopping.signal.aborted) return archived;
        // One task that cannot be archived must not keep the others.
        if (await this.#archive(ref).catch((error: unknown) => void failures.push(error))) archived++;
      }
      if (failures.length > 0) throw new AggregateError(failures, `${failures.length} tasks could not be archived`);
      if (expired.length < BATCH) break;
    }
    return archived;
  }

  async #archive(ref: TaskRef): Promise<boolean> {
    const { store, archive } = this.#options;
    const task = await store.get(ref);
    // Another archiver was faster.
    if (task === undefined) return false;
    const archived = { task, journal: await readJournal(store, ref) };
    const { signal } = this.#stopping;
    await (typeof archive === 'string' ? appendLine(archive, archived) : archive(archived, { signal }));
    // A function that gave up early because it was told to stop has archived nothing.
    return !signal.aborted && (await store.remove(ref)).answer === 'removed';
  }
}

async function readJournal(store: TaskStore, ref: TaskRef): Promise<readonly JournalEntry[]> {
  const journal: JournalEntry[] = [];
  for (;;) {
    const entries = await store.read(ref, { after: journal.at(-1)?.position ?? 0 });
    if (entries.length === 0) return journal;
    journal.push(...entries);
  }
}

/** On disk before it returns: the task is removed next. */
async function appendLine(path: string, archived: ArchivedTask): Promise<void> {
  const file = await open(path, 'a', 0o600);
  try {
    await file.appendFile(`${JSON.stringify(archived)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
}
