import { join } from 'node:path';
import type { CallResult, StopReport } from '@whoa/core';
import type { HistoryEntry } from '@whoa/core/testing';
import {
  followTask as follow,
  isFinalStatus,
  type TaskRecord,
  type TaskRef,
  type TaskStore,
  type TaskStoreConfig,
} from '@whoa/tasks';
import { afterAll } from 'vitest';
import { forChange } from '../../night.ts';
import { type Child, startProgram } from '../../tasks/child.ts';
import { openStore } from '../../tasks/open-store.ts';
import { type SharedStoreKind, storeKinds } from '../../tasks/shared-stores.ts';
import { ShownJournal } from '../../tasks/shown-journal.ts';
import { type Fixture, merged, until } from '../fixture.ts';
import { machineTime } from '../test-agent.ts';
import type { PromptResult, RunningPrompt, Surface } from './surface.ts';

const TENANT = 'acme';

/** Long enough for a worker on a busy machine. */
const LEASE_MS = 15_000;
/** For workers that will be killed or suspended: others wait this long. */
export const MORTAL_LEASE_MS = 3_000;
export const POLL_MS = 100;

/** A kind of place whose server the tests of one file share. */
export interface OpenSharedStore {
  readonly name: string;
  /** Opens a place of one's own: workers of one test do not see the tasks of another. */
  open(): Promise<string>;
}

/** What does not depend on the store is proved for every change on one, and at night on all. */
export const EVERY_STORE: readonly string[] = ['SQLite', 'Postgres'];
const STORES = forChange(EVERY_STORE, (name) => name === 'Postgres');

/** Places of the kinds named. A server is started when it is first needed, and stopped after the last test of the file. */
export function sharedStores(names: readonly string[] = STORES): OpenSharedStore[] {
  return storeKinds
    .filter(({ name }) => names.includes(name))
    .map((kind) => {
      const location = known.get(kind.name) ?? shareStore(kind);
      known.set(kind.name, location);
      return location;
    });
}

/** The places of the current test file. */
const known = new Map<string, OpenSharedStore>();

function shareStore(kind: SharedStoreKind): OpenSharedStore {
  const opened: ReturnType<SharedStoreKind['open']>[] = [];
  afterAll(async () => {
    known.delete(kind.name);
    for (const location of opened) await (await location)[Symbol.asyncDispose]();
  });
  let count = 0;
  return {
    name: kind.name,
    async open() {
      if (kind.name === 'SQLite' || opened.length === 0) opened.push(kind.open());
      const { location } = await opened.at(-1)!;
      if (!location.startsWith('{')) return location;
      const own = `own_${++count}`;
      const config = JSON.parse(location) as TaskStoreConfig;
      return JSON.stringify({ ...config, schema: own });
    },
  };
}

/** Tasks on a store, whose worker is another process. */
export function taskSurface(shared: OpenSharedStore): Surface {
  return {
    name: `a task on ${shared.name}`,
    async open(fixture) {
      const location = await shared.open();
      const store = openStore(location);
      const worker = startWorker(location, fixture);
      await worker.hear<{ type: string }>(({ type }) => type === 'serving');
      return {
        async start(prompt) {
          const receipt = await store.create({ tenant: TENANT, agent: 'tester', input: prompt });
          if (receipt.result !== 'created') throw new Error(`created: ${receipt.result}`);
          return followTask(store, { tenant: TENANT, id: receipt.task.id }, fixture);
        },
        async [Symbol.asyncDispose]() {
          if (worker.process.connected) worker.process.send('stop');
          await worker.ended;
          await store[Symbol.asyncDispose]();
        },
      };
    },
  };
}

/** Starts a worker in a separate process. */
export function startWorker(location: string, { provider, folder }: Fixture, { leaseMs = LEASE_MS } = {}): Child {
  const program = join(import.meta.dirname, '../programs/worker.ts');
  return startProgram(program, [location, provider.url, folder, `${leaseMs}`, `${POLL_MS}`]);
}

/** A task from its creator's point of view, with everything that the creator sees. */
export function followTask(store: TaskStore, ref: TaskRef, fixture: Fixture): RunningPrompt {
  const seen: { at: number; entry: HistoryEntry }[] = [];
  const note = (entry: HistoryEntry): void => {
    seen.push({ at: machineTime(), entry });
  };
  const shown = new ShownJournal();
  let isFollowing = false;
  const show = async (): Promise<void> => {
    for await (const one of follow(store, ref)) if (one.type !== 'end') shown.add(one);
  };
  const look = async (): Promise<TaskRecord> => {
    const task = await store.get(ref);
    if (task === undefined) throw new Error(`task ${ref.id} is gone`);
    note({ seen: 'task', task });
    return task;
  };
  const read = async (): Promise<PromptResult> => {
    const entries = await store.read(ref);
    note({ seen: 'journal', id: ref.id, entries });
    return toResult(
      await look(),
      entries.map(({ event }) => event as unknown as JournalEvent),
    );
  };
  return {
    id: ref.id,
    async cancel(reason, options) {
      const receipt = await store.cancel(ref, reason, options);
      note({ seen: 'task-receipt', id: ref.id, receipt });
      return receipt;
    },
    cancelReceived: () =>
      until(async () =>
        (await store.read(ref)).some(({ event }) => (event as { type?: string }).type === 'level-changed'),
      ),
    end: () => waitForEnd(store, ref, look).then(read),
    read,
    async readText() {
      if (!isFollowing) show().catch(() => {});
      isFollowing = true;
      note({ seen: 'journal', id: ref.id, entries: await store.read(ref) });
      return joinWords(shown.entries.map(({ event }) => event as unknown as JournalEvent));
    },
    history: async () => {
      await read();
      return merged(seen, fixture.effects());
    },
  };
}

/** Hints wake it, and so does the end that was there before it listened. */
async function waitForEnd(
  store: TaskStore,
  { id }: TaskRef,
  look: () => Promise<TaskRecord | undefined>,
): Promise<void> {
  let wake = (): void => {};
  await using watching = await store.watch({ id }, () => wake());
  for (let task = await look(); !isFinalStatus(task?.status ?? 'init'); task = await look()) {
    const next = new Promise<void>((resolve) => (wake = resolve));
    const late = setTimeout(() => wake(), 100);
    await next;
    clearTimeout(late);
  }
  void watching;
}

/** The text of the last reply in a journal. */
function joinWords(events: readonly JournalEvent[]): string {
  const from = events.findLastIndex(({ type }) => type === 'turn-start');
  return events
    .slice(from)
    .map(({ type, text }) => (type === 'text' ? text : ''))
    .join('');
}

interface JournalEvent {
  readonly type: string;
  readonly text?: string;
  readonly result?: CallResult;
}

function toResult({ status, outcome }: TaskRecord, journal: readonly JournalEvent[]): PromptResult {
  return {
    status,
    text: outcome?.answer ?? '',
    calls: journal.flatMap(({ type, result }) => (type === 'call-end' && result !== undefined ? [result] : [])),
    reason: outcome?.reason,
    report: outcome?.stopReport as StopReport | undefined,
  };
}
