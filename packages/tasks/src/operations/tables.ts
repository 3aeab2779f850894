import type { Json } from '@whoa/core';
import type { SeenWaiter } from '../overview.ts';
import { SETTLE } from '../rules/rules.ts';
import type { TaskStatus } from '../status.ts';
import type { Hint } from '../store.ts';
import type { ListRequest, StoreRules } from '../stores/driver.ts';
import type { ConversationRecord, ConversationRef, JournalEntry, TaskHead } from '../task.ts';

/** A task as a local store keeps it: its head, and what only the store and its worker may know. */
export interface KeptTask extends TaskHead {
  /** Whose inputs are its own: debouncing hands them on instead of copying them. */
  readonly inputsOf: string;
  /** Who may write to it; after its end, who did. */
  readonly session?: string;
  readonly claim?: string;
  /** The claim that handed it back last. */
  readonly released?: string;
  /** Its worker has not confirmed the latest order. */
  readonly told?: boolean;
}

/** Where a conversation stands, without what was said in it: that may be long, and most operations do not need it. */
export interface Conversation extends Omit<ConversationRecord, 'history'> {
  readonly historyBytes: number;
}

/** One life of a worker. */
export interface Session {
  readonly id: string;
  readonly worker: string;
  readonly leaseMs: number;
  /** When it runs out. Left out while it holds nothing. */
  readonly expiresAt?: number;
  /** Final. */
  readonly isOver: boolean;
  /** It held a task whose worker had died before: only such tasks are charged for this death. */
  readonly hadSuspect: boolean;
  readonly takeNumber: number;
  /** What the last take that found something handed out. */
  readonly took: readonly string[];
  /** The claim of that take. */
  readonly tookBy?: string;
  /** When it last held something. */
  readonly usedAt: number;
}

/** What a domain remembers of time. */
export interface DomainState {
  /** The last visit of a worker, within an eighth of a lease. */
  readonly pulse: number;
  /** Nothing is freed before. */
  readonly graceUntil: number;
  /** Grace was given since the last beat. */
  readonly graceGiven: boolean;
  readonly sweepAskedAt: number;
}

/** Tasks of one tenant that are ready for one agent, or only have to be settled. */
export interface Lane {
  readonly agent: string;
  readonly tenant: string;
}

/**
 * What the moves work on: one transaction on a local store. Nothing here waits, so nothing can come in between. Where a
 * task is found (ready in its lane, later, queued, held by a session, told) follows from its fields.
 */
export interface Tables {
  task(id: string): KeptTask | undefined;
  saveTask(task: KeptTask): void;
  addInput(owner: string, input: Json): void;
  inputs(owner: string): readonly Json[];
  inputsCount(owner: string): number;

  conversation(ref: ConversationRef): Conversation | undefined;
  saveConversation(conversation: Conversation): void;
  history(ref: ConversationRef): readonly Json[];
  /** Adds to a history, at little cost however long it is. */
  addHistory(ref: ConversationRef, said: readonly string[]): void;
  clearHistory(ref: ConversationRef): void;
  /** How many tasks of a concurrency key are past its queue, counted up to a limit. */
  countAdmitted(key: { readonly tenant: string; readonly key: string }, limit: number): number;
  countQueued(key: { readonly tenant: string; readonly key: string }, limit: number): number;
  firstQueued(key: { readonly tenant: string; readonly key: string }): KeptTask | undefined;

  /** Removes what an older task of the same name may have left. */
  clear(id: string): void;
  addEntries(id: string, entries: readonly JournalEntry[]): void;
  /** How large those entries are together that are there. */
  bytesOf(id: string, positions: readonly number[]): number;
  removeEntries(id: string, positions: readonly number[]): void;
  /** The number of a command, by the nonce that it was sent with. */
  sent(id: string, nonce: string): number | undefined;
  /** Notes a nonce; only those of the latest `maxNonces` numbers need be kept. */
  saveSent(id: string, sent: { readonly nonce: string; readonly number: number }): void;

  /** Puts a lane that has something behind all others, unless it is among them. */
  openLane(lane: Lane): void;
  closeLane(lane: Lane): void;
  /** The open lane of these agents that waited longest. */
  firstLane(agents: readonly string[]): Lane | undefined;
  /** Puts a lane behind all others. */
  rotateLane(lane: Lane): void;
  /** The first task of a lane: highest priority, then longest ready. */
  firstReady(lane: Lane): KeptTask | undefined;
  countReady(lane: Lane, limit: number): number;
  /** The agents for which something of a tenant is ready. */
  readyAgents(tenant: string): readonly string[];
  countHeldOf(of: { readonly tenant: string } | { readonly agent: string }, limit: number): number;
  /** Tasks in `later` whose time has come. */
  due(now: number, limit: number): readonly KeptTask[];
  nextLater(): number | undefined;

  session(id: string): Session | undefined;
  saveSession(session: Session): void;
  /** The session that runs out first. */
  firstSession(): Session | undefined;
  /** Sessions that run out after a moment: only a clock that stepped back makes such. */
  sessionsAfter(at: number): readonly Session[];
  heldBy(session: string, limit: number): readonly KeptTask[];
  countHeldBy(session: string): number;
  toldIn(session: string, limit: number): readonly KeptTask[];
  domain(): DomainState | undefined;
  saveDomain(state: DomainState): void;

  /** Notes that a worker waits for work for these agents; writes nothing if that was noted not long ago. */
  park(worker: string, agents: readonly string[], at: number): void;
  unpark(worker: string): void;
  /** Takes one worker out that waits for work for an agent, or for any if only something is to be settled. */
  popWaiter(agent: string, since: number): string | undefined;

  /** Told to watchers once the transaction has been committed. */
  tell(hint: Hint): void;
}

/** What a local store is asked. */
export interface Queries {
  list(filter: ListRequest): readonly KeptTask[];
  countStatus(of: { readonly tenant: string; readonly status: TaskStatus }, limit: number): number;
  /** Names of tenants that have tasks, after one, in the order of their bytes. */
  tenants(after: string, limit: number): readonly string[];
  /** Sessions that can run out. */
  sessions(limit: number): readonly Session[];
  /** Workers that have waited for work since a moment. */
  waiters(since: number, limit: number): readonly SeenWaiter[];
  entries(id: string, range: { readonly after: number; readonly limit: number }): readonly JournalEntry[];
  /** Forgets a few tasks that ended before, conversations and sessions untouched since; constant work each time. */
  forget(before: { readonly endedAt: number; readonly changedAt: number; readonly usedAt: number }): void;
}

/** A move's surroundings: what it works on, when, and under which rules. */
export interface Moment {
  readonly tables: Tables;
  readonly now: number;
  readonly rules: StoreRules;
}

/** The lane a task is ready in: one that only has to be settled can be taken by any worker. */
export function laneOf({ agent, tenant, status, stop }: KeptTask): Lane {
  return { agent: status === 'cancelling' && stop?.undo !== true ? SETTLE : agent, tenant };
}

/** A task as its watchers know it. A cancel brings its order along. */
export function hintOf(type: 'status' | 'cancel' | 'command' | 'wake' | 'journal', task: KeptTask): Hint {
  const { id, tenant, worker, conversation, epoch, claim, orderNumber, stop } = task;
  return {
    type,
    id,
    tenant,
    ...(worker !== undefined && { worker }),
    ...(conversation !== undefined && { conversation }),
    ...(type === 'cancel' &&
      stop !== undefined &&
      claim !== undefined && { order: { epoch, claim, orderNumber, stop } }),
  };
}

/** What others may know of a task. */
export function headOf(task: KeptTask): TaskHead {
  const { inputsOf: _inputsOf, session: _session, claim: _claim, released: _released, told: _told, ...head } = task;
  return head;
}
