import type { Json } from '@whoa/core';
import type { Watchers } from '../../bus/watchers.ts';
import type { PauseTarget } from '../../overview.ts';
import { compareQuestions } from '../../question.ts';
import type { Hint } from '../../store.ts';
import type { ConversationRef, JournalEntry } from '../../task.ts';
import type { ListRequest } from '../driver.ts';
import type {
  Conversation,
  Queries,
  Session,
  StoredQuestion,
  StoredTask,
  StoreState,
  Tables,
} from '../operations/tables.ts';
import { findBackgroundOwner } from '../rules/background.ts';
import { isOverdue } from '../rules/questions.ts';
import { LIMITS } from '../rules/rules.ts';
import { feedTables } from './feed.ts';
import { TaskIndexes } from './index-tables.ts';
import { getList, journalTables } from './journal.ts';

/** The inbox of the only process. */
const INBOX = 'memory';

/** Everything that a store in memory holds. */
export class MemoryTables {
  readonly #watchers: Watchers;
  readonly #tasks = new Map<string, StoredTask>();
  readonly #byTenant = new Map<string, Map<string, StoredTask>>();
  readonly #indexes = new TaskIndexes((id) => this.#tasks.get(id));
  readonly #inputs = new Map<string, Json[]>();
  readonly #journals = new Map<string, JournalEntry[]>();
  readonly #conversations = new Map<string, Conversation>();
  readonly #histories = new Map<string, Json[]>();
  readonly #sessions = new Map<string, Session>();
  /** For each task, the numbers of commands by their nonces, oldest first. */
  readonly #sent = new Map<string, Map<string, number>>();
  /** By task. */
  readonly #questions = new Map<string, Map<string, StoredQuestion>>();
  /** Ended tasks, earliest end first: a map keeps insertion order. */
  readonly #ended = new Map<string, number>();
  /** Targets as JSON. */
  readonly #paused = new Set<string>();
  readonly #engines = new Map<string, string>();
  #storeState: StoreState | undefined;
  #hints: Hint[] = [];

  readonly operations: Tables & Queries = {
    ...this.#indexes.operations,
    ...journalTables(this.#journals),
    ...feedTables(),
    task: (id) => this.#tasks.get(id),
    saveTask: (task) => this.#saveTask(task),
    addInput: (owner, input) => void getList(this.#inputs, owner).push(input),
    inputs: (owner) => this.#inputs.get(owner) ?? [],
    inputsCount: (owner) => this.#inputs.get(owner)?.length ?? 0,
    moveInputs: (from, to) => {
      getList(this.#inputs, to).push(...(this.#inputs.get(from) ?? []));
      this.#inputs.delete(from);
    },
    conversation: (ref) => this.#conversations.get(toKey(ref)),
    saveConversation: (conversation) => {
      const key = toKey(conversation);
      this.#conversations.delete(key);
      this.#conversations.set(key, conversation);
    },
    history: (ref) => this.#histories.get(toKey(ref)) ?? [],
    addHistory: (ref, messages) => {
      const history = getList(this.#histories, toKey(ref));
      for (const message of messages) history.push(JSON.parse(message) as Json);
    },
    clearHistory: (ref) => this.#histories.delete(toKey(ref)),
    clear: (id) => {
      this.#clear(id);
      this.#inputs.delete(id);
    },
    removeTask: (task) => this.#removeTask(task),
    removeConversation: (ref) => this.#removeConversation(toKey(ref)),
    findCommandNumber: (id, nonce) => this.#sent.get(id)?.get(nonce),
    saveCommandNonce: (id, { nonce, number }) => {
      const sent = this.#sent.get(id) ?? new Map<string, number>();
      this.#sent.set(id, sent.set(nonce, number));
      for (const [old, at] of sent) if (at <= number - LIMITS.maxNonces) sent.delete(old);
    },
    question: (task, id) => this.#questions.get(task)?.get(id),
    saveQuestion: (question) => {
      const { task, id } = question;
      this.#questions.set(task, (this.#questions.get(task) ?? new Map<string, StoredQuestion>()).set(id, question));
    },
    liveQuestions: (task) => this.#getQuestions(task).filter(({ state }) => state !== 'closed'),
    allQuestions: (task) => this.#getQuestions(task),
    openQuestions: ({ tenant, after, limit, now }) => {
      const isAsking = (task: StoredTask) => task.questionCounts?.open && !isOverdue(task, now);
      const asking = [...(this.#byTenant.get(tenant)?.values() ?? [])].filter(isAsking);
      const isOpen = ({ state, expiresAt = Infinity }: StoredQuestion) => state === 'open' && expiresAt > now;
      const open = asking.flatMap(({ id }) => this.#getQuestions(id)).filter(isOpen);
      const wanted = open.filter((one) => after === undefined || compareQuestions(one, after) > 0);
      return wanted.toSorted(compareQuestions).slice(0, limit);
    },
    questionFigures: (limit) => {
      const asking = [...this.#tasks.values()].filter(({ questionCounts }) => questionCounts?.open);
      const open = asking.flatMap(({ id }) => this.#getQuestions(id).filter(({ state }) => state === 'open'));
      const parked = asking.filter(({ stage }) => stage === 'parked').length;
      const oldest = open.length > 0 && { oldestQuestionAt: Math.min(...open.map(({ askedAt }) => askedAt)) };
      return { openQuestions: Math.min(limit, open.length), ...oldest, asking: asking.length - parked, parked };
    },
    session: (id) => this.#sessions.get(id),
    saveSession: (session) => void this.#sessions.set(session.id, session),
    firstSession: () => {
      let first: Session | undefined;
      for (const session of this.#sessions.values()) {
        if (session.expiresAt !== undefined && session.expiresAt < (first?.expiresAt ?? Infinity)) first = session;
      }
      return first;
    },
    sessionsAfter: (at) => [...this.#sessions.values()].filter(({ expiresAt = 0 }) => expiresAt > at),
    storeState: () => this.#storeState,
    saveStoreState: (state) => void (this.#storeState = state),
    notify: (hint) => this.#hints.push(hint),
    readers: (task) => (this.#watchers.findReaders(task).length > 0 ? [INBOX] : []),
    list: (filter) => this.#list(filter),
    countStatus: ({ tenant, status, endedAt: before }, limit) => {
      const tasks = [...(this.#byTenant.get(tenant)?.values() ?? [])];
      const found = tasks.filter((task) => task.status === status && (task.endedAt ?? Infinity) > before);
      return Math.min(found.length, limit);
    },
    firstEnded: () => this.#ended.values().next().value,
    tenants: (after, limit) => {
      const used = [...this.#byTenant].filter(([tenant, tasks]) => tasks.size > 0 && compareBytes(tenant, after) > 0);
      return used
        .map(([tenant]) => tenant)
        .toSorted(compareBytes)
        .slice(0, limit);
    },
    sessions: (limit) => [...this.#sessions.values()].filter((one) => one.expiresAt !== undefined).slice(0, limit),
    conversations: ({ tenant, after, limit }) => {
      const names = [...this.#conversations.values()].filter((one) => one.tenant === tenant);
      return names
        .map(({ conversation }) => conversation)
        .filter((name) => compareBytes(name, after) > 0)
        .toSorted(compareBytes)
        .slice(0, limit);
    },
    isPaused: (target) => this.#paused.size > 0 && this.#paused.has(JSON.stringify(target)),
    setPaused: (target, isPaused) => {
      if (isPaused) this.#paused.add(JSON.stringify(target));
      else this.#paused.delete(JSON.stringify(target));
    },
    engine: (agent) => this.#engines.get(agent),
    setEngine: (agent, engine) => {
      if (engine === undefined) this.#engines.delete(agent);
      else this.#engines.set(agent, engine);
    },
    engines: () => Object.fromEntries(this.#engines),
    paused: (limit) => [...this.#paused].slice(0, limit).map((text) => JSON.parse(text) as PauseTarget),
    purge: (before, limit) => this.#purge(before, limit),
  };

  constructor(watchers: Watchers) {
    this.#watchers = watchers;
  }

  /** Returns the hint for the worker of a task that somebody has begun to read. */
  findWatched(id: string): (Hint & { readonly type: 'watched' }) | undefined {
    const { stage, worker, tenant } = this.#tasks.get(id) ?? {};
    return stage === 'held' ? { type: 'watched', id, tenant: tenant!, worker: worker!, reader: INBOX } : undefined;
  }

  takeHints(): Hint[] {
    const hints = this.#hints;
    this.#hints = [];
    return hints;
  }

  #saveTask(task: StoredTask): void {
    const ofTenant = this.#byTenant.get(task.tenant) ?? new Map<string, StoredTask>();
    const before = this.#tasks.get(task.id);
    this.#byTenant.set(task.tenant, ofTenant);
    this.#tasks.set(task.id, task);
    ofTenant.set(task.id, task);
    this.#indexes.change(before, task);
    if (task.endedAt !== undefined) this.#ended.set(task.id, task.endedAt);
  }

  #clear(id: string): void {
    this.#journals.delete(id);
    this.#sent.delete(id);
    this.#questions.delete(id);
  }

  #getQuestions(task: string): StoredQuestion[] {
    return [...(this.#questions.get(task)?.values() ?? [])].toSorted(compareQuestions);
  }

  #removeTask({ id, tenant, inputOwner }: StoredTask): void {
    this.#ended.delete(id);
    this.#byTenant.get(tenant)?.delete(id);
    this.#tasks.delete(id);
    this.#clear(id);
    this.#inputs.delete(inputOwner);
  }

  #removeConversation(key: string): void {
    this.#conversations.delete(key);
    this.#histories.delete(key);
  }

  #list({ tenant, status, conversation, backgroundOf: owner, limit, after }: ListRequest): StoredTask[] {
    const wanted = [...(this.#byTenant.get(tenant)?.values() ?? [])].filter(
      (task) =>
        (status === undefined || task.status === status) &&
        (conversation === undefined || task.conversation === conversation) &&
        (owner === undefined || findBackgroundOwner(task) === owner) &&
        (after === undefined || newestFirst(after, task) < 0),
    );
    return wanted.toSorted(newestFirst).slice(0, limit);
  }

  #purge({ endedAt, changedAt, lastHeldAt }: Parameters<Queries['purge']>[0], limit: number): boolean {
    let removed = 0;
    for (const [id, at] of first(this.#ended, limit)) {
      if (at > endedAt) break;
      this.#removeTask(this.#tasks.get(id)!);
      removed++;
    }
    for (const [key, conversation] of first(this.#conversations, limit)) {
      if (conversation.changedAt > changedAt) break;
      if (conversation.current !== undefined || conversation.debouncing !== undefined) continue;
      this.#removeConversation(key);
    }
    for (const [id, session] of first(this.#sessions, limit)) {
      if (session.expiresAt === undefined && session.lastHeldAt <= lastHeldAt) this.#sessions.delete(id);
    }
    return removed === limit;
  }
}

function first<K, V>(map: ReadonlyMap<K, V>, limit: number): [K, V][] {
  const some: [K, V][] = [];
  for (const entry of map) if (some.push(entry) >= limit) break;
  return some;
}

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

const toKey = ({ tenant, conversation }: ConversationRef): string => JSON.stringify([tenant, conversation]);

function newestFirst(a: Pick<StoredTask, 'createdAt' | 'id'>, b: Pick<StoredTask, 'createdAt' | 'id'>): number {
  return b.createdAt - a.createdAt || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}
