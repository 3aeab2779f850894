import { type Json, systemWorld, type World } from '@whoa/core';
import { shardOf } from '../id.ts';
import type { Line, Queries, Tables } from '../moves/tables.ts';
import { type Hint, NONCES_MAX, type StoreOptions, type TaskStore } from '../store.ts';
import type { ConversationRef, JournalEntry, TaskRecord } from '../task.ts';
import { createLocalStore } from './local.ts';
import { Watchers } from './watchers.ts';

/** How many expired things are looked for each time a task is created. */
const FORGET_MAX = 10;

export interface MemoryStoreOptions extends StoreOptions {
  readonly world?: World;
}

/** A store in this process. It is gone with the process, and nobody else can reach it. */
export function createMemoryStore(options: MemoryStoreOptions = {}): TaskStore {
  const { world = systemWorld } = options;
  const watchers = new Watchers();
  const tables = new MemoryTables();
  return createLocalStore(
    {
      name: 'memory',
      now: () => world.clock.now(),
      // Nothing here waits, so a transaction needs no lock; a move that throws does so before it saves anything.
      async transact(work) {
        const answer = structuredClone(work(tables.operations));
        const hints = structuredClone(tables.takeHints());
        // Tell in a later microtask: whoever made the change must not be called back in the middle of making it.
        await Promise.resolve();
        for (const hint of hints) watchers.tell(hint);
        return answer;
      },
      query: (work) => Promise.resolve(structuredClone(work(tables.operations))),
      watch: (filter, listener) => Promise.resolve(watchers.add(filter, listener)),
      [Symbol.asyncDispose]() {
        watchers.clear();
        return Promise.resolve();
      },
    },
    options,
  );
}

class MemoryTables {
  readonly #tasks = new Map<string, TaskRecord>();
  readonly #byTenant = new Map<string, Map<string, TaskRecord>>();
  readonly #journals = new Map<string, JournalEntry[]>();
  readonly #conversations = new Map<string, Line>();
  readonly #histories = new Map<string, Json[]>();
  /** Of each task, the numbers of commands by the nonces they were sent with, oldest first. */
  readonly #sent = new Map<string, Map<string, number>>();
  /** Live tasks that somebody should look at some day. */
  readonly #due = new Map<string, number>();
  /** Ended tasks, oldest end first: a map keeps the order in which they were added. */
  readonly #ended = new Map<string, number>();
  #hints: Hint[] = [];

  readonly operations: Tables & Queries = {
    task: (id) => this.#tasks.get(id),
    saveTask: (task) => this.#saveTask(task),
    conversation: (ref) => this.#conversations.get(keyOf(ref)),
    saveConversation: (conversation) => {
      const key = keyOf(conversation);
      this.#conversations.delete(key);
      this.#conversations.set(key, conversation);
    },
    history: (ref) => this.#histories.get(keyOf(ref)) ?? [],
    addHistory: (ref, said) => {
      const history = this.#histories.get(keyOf(ref)) ?? [];
      for (const message of said) history.push(message);
      this.#histories.set(keyOf(ref), history);
    },
    clearHistory: (ref) => this.#histories.delete(keyOf(ref)),
    clear: (id) => this.#clear(id),
    sent: (id, nonce) => this.#sent.get(id)?.get(nonce),
    saveSent: (id, { nonce, number }) => {
      const sent = this.#sent.get(id) ?? new Map<string, number>();
      this.#sent.set(id, sent.set(nonce, number));
      for (const [old, at] of sent) if (at <= number - NONCES_MAX) sent.delete(old);
    },
    bytesOf: (id, positions) => {
      const wanted = new Set(positions);
      const found = (this.#journals.get(id) ?? []).filter(({ position }) => wanted.has(position));
      return found.reduce((bytes, { event }) => bytes + Buffer.byteLength(JSON.stringify(event)), 0);
    },
    removeEntries: (id, positions) => {
      const removed = new Set(positions);
      const journal = this.#journals.get(id) ?? [];
      this.#journals.set(
        id,
        journal.filter(({ position }) => !removed.has(position)),
      );
    },
    addEntries: (id, entries) => {
      const journal = this.#journals.get(id) ?? [];
      journal.push(...entries);
      this.#journals.set(id, journal);
    },
    tell: (hint) => this.#hints.push(hint),
    list: (filter) => this.#list(filter),
    entries: (id, { after, limit }) => {
      const journal = this.#journals.get(id) ?? [];
      // Nothing can stand further back than if there were no gaps.
      let first = Math.min(Math.max(0, after), journal.length);
      while (first > 0 && journal[first - 1]!.position > after) first--;
      return journal.slice(first, first + limit);
    },
    due: ({ now, limit, shard }) => {
      const due = [...this.#due].filter(([id, at]) => at <= now && (shard === undefined || shardOf(id) === shard));
      const first = due.toSorted(([, a], [, b]) => a - b).slice(0, limit);
      return first.map(([id]) => id);
    },
    forget: (before) => this.#forget(before),
  };

  takeHints(): Hint[] {
    const hints = this.#hints;
    this.#hints = [];
    return hints;
  }

  #saveTask(task: TaskRecord): void {
    const ofTenant = this.#byTenant.get(task.tenant) ?? new Map<string, TaskRecord>();
    this.#byTenant.set(task.tenant, ofTenant);
    this.#tasks.set(task.id, task);
    ofTenant.set(task.id, task);
    if (task.dueAt === undefined) this.#due.delete(task.id);
    else this.#due.set(task.id, task.dueAt);
    if (task.endedAt !== undefined) this.#ended.set(task.id, task.endedAt);
  }

  #clear(id: string): void {
    this.#journals.delete(id);
    this.#sent.delete(id);
  }

  #list({ tenant, status, conversation, limit, cursor }: Parameters<Queries['list']>[0]): TaskRecord[] {
    const wanted = [...(this.#byTenant.get(tenant)?.values() ?? [])].filter(
      (task) =>
        (status === undefined || task.status === status) &&
        (conversation === undefined || task.conversation === conversation) &&
        (cursor === undefined || isAfter(task, cursor)),
    );
    return wanted.toSorted(newestFirst).slice(0, limit);
  }

  #forget({ endedAt, changedAt }: Parameters<Queries['forget']>[0]): void {
    for (const [id, at] of first(this.#ended)) {
      if (at > endedAt) break;
      this.#ended.delete(id);
      this.#byTenant.get(this.#tasks.get(id)?.tenant ?? '')?.delete(id);
      this.#tasks.delete(id);
      this.#clear(id);
    }
    for (const [key, conversation] of first(this.#conversations)) {
      if (conversation.changedAt > changedAt) break;
      if (conversation.current !== undefined || conversation.gathering !== undefined) continue;
      this.#conversations.delete(key);
      this.#histories.delete(key);
    }
  }
}

function first<K, V>(map: ReadonlyMap<K, V>): [K, V][] {
  const some: [K, V][] = [];
  for (const entry of map) if (some.push(entry) >= FORGET_MAX) break;
  return some;
}

function keyOf({ tenant, conversation }: ConversationRef): string {
  return JSON.stringify([tenant, conversation]);
}

function newestFirst(a: TaskRecord, b: TaskRecord): number {
  return b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1);
}

/** Whether a task comes after a cursor (`createdAt/id`), newest first. */
function isAfter(task: TaskRecord, cursor: string): boolean {
  const slash = cursor.indexOf('/');
  const at = Number(cursor.slice(0, slash));
  return task.createdAt < at || (task.createdAt === at && task.id < cursor.slice(slash + 1));
}
