import type { HistoryEntry } from '@whoa/core/testing';
import type { JournalEntry, TaskRecord, TaskStore } from '@whoa/tasks';
import type { ClaimRef } from '@whoa/tasks/store';
import type { Violation } from '../../packages/core/src/testing/history.ts';
import type { TakenTask } from '../../packages/tasks/src/delivery/worker-store.ts';
import { findIntents } from './approvals.ts';
import type { Commit } from './network.ts';
import type { Effect } from './work.ts';

const FINAL: ReadonlySet<string> = new Set(['success', 'failed', 'cancelled']);
/** Two crashes make a task a suspect, three more are charged; or twenty in total. */
const MIN_DEATHS = 5;
/** Frequent operations that do not change a record. */
const QUIET: ReadonlySet<string> = new Set(['heartbeat', 'get', 'find', 'read', 'held', 'load']);
const WRITES: ReadonlySet<string> = new Set(['append', 'release', 'finish']);

interface Created {
  readonly task?: TaskRecord;
  readonly superseded?: readonly string[];
}

/** Records what the store and the tools did, and verifies what the checker of recorded histories cannot see. */
export class SimulatedHistory {
  readonly entries: HistoryEntry[] = [];
  readonly violations: Violation[] = [];
  readonly #store: TaskStore;
  readonly #rules: { readonly maxRunningPerTenant?: number };
  /** Each task's latest claim. */
  readonly #claims = new Map<string, ClaimRef>();
  readonly #ended = new Map<string, string>();
  /** The ends that workers wrote, by task. */
  readonly #finished = new Map<string, string>();
  /** The task of each call. */
  readonly #calls = new Map<string, string>();
  /** Tasks whose cancel was accepted. */
  readonly #stopping = new Set<string>();
  /** The tenant of each task. */
  readonly #tenants = new Map<string, string>();
  readonly #undone = new Set<string>();
  /** Tasks that were claimed by id: limits do not apply to them. */
  readonly #claimedById = new Set<string>();
  /** Tasks that were reported as superseded by a newer one. */
  readonly #superseded = new Set<string>();
  /** Sessions that have held a task: the upper bound for crashes. */
  readonly crashes = new Set<string>();
  /** Whether anything may have changed since the last poll. */
  #hasChanged = true;
  #allEnded = false;

  constructor(store: TaskStore, rules: { readonly maxRunningPerTenant?: number }) {
    this.#store = store;
    this.#rules = rules;
  }

  get tasks(): number {
    return this.#tenants.size;
  }

  getTenant(id: string): string {
    return this.#tenants.get(id) ?? 'unknown';
  }

  commit(commit: Commit): void {
    const { name, args, answer, error } = commit;
    const isEmptyTake = name === 'take' && (answer as { tasks?: readonly unknown[] } | undefined)?.tasks?.length === 0;
    if (!QUIET.has(name) && !isEmptyTake) this.#hasChanged = true;
    if (name === 'create' && answer !== undefined) this.#created(answer as Created);
    if (name === 'take') this.#taken(answer as { tasks?: readonly TakenTask[]; isRepeat?: boolean } | undefined);
    if (name === 'claim') this.#claimed(answer as { result?: string; claim?: ClaimRef } | undefined);
    if (name === 'cancel' && answer !== undefined) this.#cancelled(args[0] as { id?: string }, answer as never);
    if (WRITES.has(name)) this.#written(args[0] as ClaimRef, { name, answer, isRefused: error !== undefined });
    if (name === 'append' && error === undefined) this.#calledIn(args);
  }

  /** A tool started. It must not start before its intent is journaled, or after its task's end can be read. */
  effect({ callId, tool, process, phase }: Effect): void {
    if (phase === 'undo') {
      if (this.#undone.has(callId)) this.#broken('P9', `the undo of ${callId} began twice`);
      this.#undone.add(callId);
    }
    if (phase !== 'begin') return;
    const id = this.#calls.get(callId);
    if (id === undefined) this.#broken('P9', `${tool} began in ${process} before the store knew of ${callId}`);
    const status = id === undefined ? undefined : this.#ended.get(id);
    if (status !== undefined) this.#broken('P4', `${id}: ${tool} began in ${process} after it had ended '${status}'`);
  }

  /** A worker reports the end of a task. */
  reported(id: string, status: string): void {
    const ended = this.#finished.get(id);
    if (FINAL.has(status) && ended !== status) {
      this.#broken('P1', `${id}: it was reported as '${status}', and the store says '${ended ?? 'not ended'}'`);
    }
  }

  /** Reads the tasks that have not ended yet, or all; returns whether all of them have ended. */
  async poll({ all = false } = {}): Promise<boolean> {
    if (!all && !this.#hasChanged) return this.#allEnded;
    this.#hasChanged = false;
    let allEnded = true;
    const running = new Map<string, number>();
    const held = new Map<string, string>();
    for (const [id, tenant] of this.#tenants) {
      if (!all && this.#ended.has(id)) continue;
      const task = await this.#store.get({ tenant, id });
      if (task === undefined) {
        this.#broken('P1', `${id}: it is gone`);
        continue;
      }
      this.#read(task);
      if (!FINAL.has(task.status)) allEnded = false;
      if (task.stage === 'held' && task.conversation !== undefined) {
        const other = held.get(`${tenant} ${task.conversation}`);
        if (other !== undefined) this.#broken('P8', `${id}: it runs at the same time as ${other} of its conversation`);
        held.set(`${tenant} ${task.conversation}`, id);
      }
      // A task that waits for a person takes no slot, and is ready once the answer has arrived.
      const isHeld = task.status === 'running' && task.stage === 'held';
      const isCounted = isHeld && !this.#claimedById.has(id);
      if (isCounted) running.set(tenant, (running.get(tenant) ?? 0) + 1);
    }
    const { maxRunningPerTenant = Infinity } = this.#rules;
    for (const [tenant, count] of running) {
      if (count > maxRunningPerTenant) this.#broken('P8', `${tenant}: ${count} of its tasks run at the same time`);
    }
    this.#allEnded = allEnded;
    return allEnded;
  }

  async journals(): Promise<void> {
    for (const [id, tenant] of this.#tenants) {
      const entries: JournalEntry[] = [];
      for (;;) {
        const piece = await this.#store.read({ tenant, id }, { after: entries.at(-1)?.position ?? 0 });
        // A reader that gets an old page again would never reach the end.
        const isBehind = (piece[0]?.position ?? 0) <= (entries.at(-1)?.position ?? 0);
        if (piece.length > 0 && isBehind) this.#broken('P5', `${id}: its journal repeats ${piece[0]!.position}`);
        if (isBehind) break;
        entries.push(...piece);
      }
      this.entries.push({ seen: 'journal', id, entries });
      const { agent, status, outcome, activity } = (await this.#store.get({ tenant, id })) ?? {};
      const counted = JSON.stringify([activity?.turns ?? 0, activity?.calls ?? 0]);
      const written = JSON.stringify(countTurnsAndCalls(entries));
      if (counted !== written) this.#broken('P5', `${id}: it counts ${counted} turns and calls, and has ${written}`);
      const journal = JSON.stringify(entries);
      // One paragraph for each message that it answered.
      const answers = (outcome?.answer ?? '').split('\n\n');
      const isSaid = answers.every((answer) => journal.includes(JSON.stringify(answer)));
      if (agent === 'assistant' && status === 'success' && !isSaid) {
        this.#broken('P5', `${id}: what it answered last is not in its journal`);
      }
    }
  }

  #read(task: TaskRecord): void {
    this.entries.push({ seen: 'task', task: task as never });
    if (FINAL.has(task.status)) this.#ended.set(task.id, task.status);
    const { error } = task.outcome ?? {};
    if (error?.code === 'WORKERS_LOST' && task.crashes < MIN_DEATHS) {
      this.#broken('P1', `${task.id}: it failed after ${task.crashes} deaths of its workers`);
    }
    if (task.crashes > this.crashes.size) {
      this.#broken('P1', `${task.id}: ${task.crashes} deaths, and not so many sessions ended`);
    }
    const isLive = !FINAL.has(task.status);
    if (isLive !== (task.stage !== undefined)) {
      this.#broken('P2', `${task.id}: ${task.status} and in stage ${task.stage ?? 'none'}`);
    }
    if (this.#superseded.has(task.id) && task.status !== 'cancelling' && task.status !== 'cancelled') {
      this.#broken('P3', `${task.id}: it is '${task.status}', and was said to be superseded`);
    }
    const claim = this.#claims.get(task.id);
    if (isLive && task.stage !== 'held' && claim !== undefined && task.epoch <= claim.epoch) {
      this.#broken('P10', `${task.id}: it was freed and its epoch did not rise`);
    }
  }

  #created({ task, superseded = [] }: Created): void {
    if (task !== undefined) this.#tenants.set(task.id, task.tenant);
    for (const id of superseded) this.#superseded.add(id);
  }

  #taken(answer: { tasks?: readonly TakenTask[]; isRepeat?: boolean } | undefined): void {
    for (const { claim, task } of answer?.tasks ?? []) {
      const before = this.#claims.get(claim.id);
      if (answer?.isRepeat !== true && before?.claim === claim.claim && before.epoch >= claim.epoch) {
        this.#broken('P10', `${claim.id}: it was taken twice with one claim`);
      }
      this.#grant(claim);
      if (this.#stopping.has(claim.id) && task.status !== 'cancelling') {
        this.#broken('P3', `${claim.id}: it was taken as '${task.status}' after a cancel was accepted`);
      }
    }
  }

  #claimed(answer: { result?: string; claim?: ClaimRef } | undefined): void {
    if (answer?.result !== 'claimed') return;
    this.#grant(answer.claim!);
    this.#claimedById.add(answer.claim!.id);
  }

  #grant(claim: ClaimRef): void {
    const before = this.#claims.get(claim.id);
    if (before !== undefined && before.epoch > claim.epoch) {
      this.#broken('P10', `${claim.id}: epoch ${claim.epoch} was given out after ${before.epoch}`);
    }
    this.#claims.set(claim.id, claim);
    this.crashes.add(claim.session);
  }

  #cancelled({ id }: { id?: string }, receipt: { result: string; status?: string }): void {
    if (id === undefined) return;
    if (receipt.status === 'cancelling') this.#stopping.add(id);
    this.entries.push({ seen: 'task-receipt', id, receipt: receipt as never });
  }

  #written(claim: ClaimRef, { name, answer, isRefused }: { name: string; answer: unknown; isRefused: boolean }): void {
    const isRepeat = (answer as { result?: string } | undefined)?.result === 'unchanged';
    if (isRepeat) return;
    this.entries.push({ seen: 'write', id: claim.id, epoch: claim.epoch, accepted: !isRefused });
    if (name === 'finish' && !isRefused) this.#finished.set(claim.id, (answer as { status: string }).status);
    const latest = this.#claims.get(claim.id);
    if (!isRefused && latest?.claim !== claim.claim) {
      this.#broken('P10', `${claim.id}: a ${name} of an old claim was taken`);
    }
  }

  #calledIn([claim, batch]: readonly unknown[]): void {
    for (const event of (batch as { events: readonly unknown[] }).events) {
      for (const callId of findIntents(event as Parameters<typeof findIntents>[0]))
        this.#calls.set(callId, (claim as ClaimRef).id);
    }
  }

  #broken(promise: Violation['promise'], what: string): void {
    this.violations.push({ promise, what });
  }
}

/** Counts the turns of a journal and the calls they requested. */
function countTurnsAndCalls(entries: readonly JournalEntry[]): [turns: number, calls: number] {
  type Turn = { readonly type: string; readonly message: { readonly content: readonly { readonly type: string }[] } };
  const turns = (entries as unknown as readonly { event: Turn }[]).filter(({ event }) => event.type === 'turn-end');
  const parts = turns.flatMap(({ event }) => event.message.content);
  return [turns.length, parts.filter(({ type }) => type === 'call').length];
}
