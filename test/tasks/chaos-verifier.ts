import { existsSync, readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import type { JournalEntry, TaskRecord, TaskStore } from '@whoa/tasks';
import { LIMITS } from '../../packages/tasks/src/ledger/rules/rules.ts';
import { retryWhileUnavailable } from './ask-until-answered.ts';
import { type ChaosReport, type ChaosRun, TENANT } from './chaos-run.ts';

interface Verified
  extends Pick<ChaosReport, 'ends' | 'receipts' | 'takenAgain' | 'wornOut' | 'entries' | 'violations'> {}

interface Logged {
  readonly entries: ReadonlyMap<string, readonly string[]>;
  readonly ends: ReadonlyMap<string, readonly string[]>;
  readonly crashes: readonly string[];
}

/** How many runs are read at a time. */
const PARALLEL = 16;
const FINAL: ReadonlySet<string> = new Set(['success', 'failed', 'cancelled']);

/** Compares each run with its receipts, the workers' log and the final state of the store. */
export async function verifyChaos({
  store,
  runs,
  log,
}: {
  readonly store: TaskStore;
  readonly runs: ReadonlyMap<string, ChaosRun>;
  readonly log: string;
}): Promise<Verified> {
  const logged = readLog(log);
  const violations = logged.crashes.map((error) => `a worker crashed: ${error}`);
  const [ends, receipts] = [new Map<string, number>(), new Map<string, number>()];
  let [takenAgain, wornOut, entries] = [0, 0, 0];
  const verify = async ([id, run]: [string, ChaosRun]): Promise<void> => {
    const task = await retryWhileUnavailable(() => store.get({ tenant: TENANT, id }));
    for (const { result } of run.receipts) count(receipts, result);
    if (task === undefined) {
      violations.push(`${id}: it is gone`);
      return;
    }
    count(ends, task.status);
    if (task.epoch > 2) takenAgain++;
    if (isWornOut(task)) wornOut++;
    const journal = await readJournal(store, id);
    entries += journal.length;
    for (const what of [
      ...faultsOfEnd(task, run),
      ...faultsOfReceipts(task, run),
      ...faultsOfJournal(task, { journal, acknowledged: logged.entries.get(id) ?? [] }),
      ...faultsOfReports(task, logged.ends.get(id) ?? []),
    ]) {
      violations.push(`${id}: ${what}`);
    }
  };
  // One iterator for all of them: each takes the next.
  const left = runs.entries();
  const verifyNext = async (): Promise<void> => {
    for (const one of left) await verify(one);
  };
  await Promise.all(Array.from({ length: PARALLEL }, verifyNext));
  violations.push(...(await findLeftovers(store, runs)));
  return {
    ends: Object.fromEntries(ends),
    receipts: Object.fromEntries(receipts),
    takenAgain,
    wornOut,
    entries,
    violations,
  };
}

/** A task ends once, as its work or its cancel decided, and its end never changes. */
function* faultsOfEnd(task: TaskRecord, run: ChaosRun): Generator<string> {
  const { ended, fails, asked, isConversation, mayBeRejected } = run;
  if (!FINAL.has(task.status)) yield `it is '${task.status}'`;
  if (ended !== undefined && !isDeepStrictEqual(task, ended)) yield 'its record changed after its end';
  const kind = task.outcome?.reason?.kind;
  const wasAsked = asked > 0 && task.outcome?.reason?.by === 'chaos';
  const isReplaced =
    (isConversation && (kind === 'superseded' || kind === 'steered' || kind === 'merged')) ||
    (mayBeRejected && kind === 'rejected');
  if (task.status === 'cancelled' && !wasAsked && !isReplaced) yield `it was cancelled (${kind}) without a request`;
  if (task.status === 'success' && fails) yield 'it succeeded, and was asked to fail';
  if (task.status === 'failed' && !fails && !isWornOut(task)) yield `it failed: ${JSON.stringify(task.outcome?.error)}`;
}

/** Its workers were lost so often that the rules fail it, and its epochs confirm that. */
function isWornOut({ outcome, crashes, epoch }: TaskRecord): boolean {
  return outcome?.error?.code === 'WORKERS_LOST' && crashes >= LIMITS.maxCrashes && epoch >= 2 * LIMITS.maxCrashes;
}

function* faultsOfReceipts(task: TaskRecord, { receipts }: ChaosRun): Generator<string> {
  if (receipts.filter(({ result }) => result === 'accepted').length > 1) yield 'two cancels were accepted';
  for (const receipt of receipts) {
    if (receipt.result === 'not-found') yield 'a cancel was told that it is unknown';
    else if (receipt.result === 'too-late') {
      if (receipt.status !== task.status) yield `a cancel was told '${receipt.status}', and it is '${task.status}'`;
    } else if (task.status !== 'cancelled') yield `a cancel was ${receipt.result}, and it ended '${task.status}'`;
    else if (!isDeepStrictEqual(receipt.reason, task.outcome?.reason)) yield 'a receipt gives another reason';
  }
}

function* faultsOfJournal(
  { position }: TaskRecord,
  { journal, acknowledged }: { readonly journal: readonly JournalEntry[]; readonly acknowledged: readonly string[] },
): Generator<string> {
  if (journal.length !== position) yield `its journal has ${journal.length} of ${position} entries`;
  const there = new Set<string>();
  let last: JournalEntry | undefined;
  for (const one of journal) {
    if (one.position !== (last?.position ?? 0) + 1)
      yield `its journal has ${one.position} after ${last?.position ?? 0}`;
    if (one.epoch < (last?.epoch ?? 0)) yield `epoch ${one.epoch} wrote after epoch ${last?.epoch}`;
    const { entry } = one.event as { entry: string };
    if (there.has(entry)) yield `entry ${entry} was written twice`;
    there.add(entry);
    last = one;
  }
  for (const entry of acknowledged) if (!there.has(entry)) yield `entry ${entry} was acknowledged and is gone`;
}

/** Workers report an end only when the store has it. */
function* faultsOfReports({ status }: TaskRecord, reports: readonly string[]): Generator<string> {
  const finals = reports.filter((report) => FINAL.has(report));
  if (finals.some((report) => report !== status)) yield `it was reported as ${finals.join()}, and is '${status}'`;
  if (finals.length > 1) yield `its end was reported ${finals.length} times`;
}

async function findLeftovers(store: TaskStore, runs: ReadonlyMap<string, ChaosRun>): Promise<string[]> {
  const left: string[] = [];
  for (const status of ['init', 'running', 'cancelling'] as const) {
    const { tasks } = await retryWhileUnavailable(() => store.list({ tenant: TENANT, status, limit: 10 }));
    for (const { id } of tasks) left.push(`${id}: it is left as '${status}'`);
  }
  const conversations = new Set([...runs.values()].flatMap(({ task }) => task.conversation ?? []));
  for (const conversation of conversations) {
    const {
      current,
      debouncing,
      waiting = [],
    } = (await retryWhileUnavailable(() => store.conversation({ tenant: TENANT, conversation }))) ?? {};
    const ids = [current, debouncing, ...waiting].filter((id) => id !== undefined);
    if (ids.length > 0) left.push(`conversation ${conversation} still has ${ids.join()}`);
  }
  return left;
}

async function readJournal(store: TaskStore, id: string): Promise<JournalEntry[]> {
  const entries: JournalEntry[] = [];
  for (;;) {
    const after = entries.at(-1)?.position ?? 0;
    const piece = await retryWhileUnavailable(() => store.read({ tenant: TENANT, id }, { after }));
    if (piece.length === 0) return entries;
    entries.push(...piece);
  }
}

/** Each line is one write, so none is partial. */
function readLog(path: string): Logged {
  const [entries, ends] = [new Map<string, string[]>(), new Map<string, string[]>()];
  const crashes: string[] = [];
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [];
  for (const line of lines.filter((one) => one !== '')) {
    const record = JSON.parse(line) as { type: string; id: string; entry: string; status: string; error: string };
    if (record.type === 'crash') crashes.push(record.error);
    else
      addTo(
        record.type === 'entry' ? entries : ends,
        record.id,
        record.type === 'entry' ? record.entry : record.status,
      );
  }
  return { entries, ends, crashes };
}

function addTo(lists: Map<string, string[]>, key: string, value: string): void {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  list.push(value);
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
