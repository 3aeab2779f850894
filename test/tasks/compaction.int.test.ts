import { setTimeout as wait } from 'node:timers/promises';
import { createAgent, type Message } from '@whoa/core';
import { type Planner, reply } from '@whoa/core/model';
import { createRunner, followTask, type TaskRef, type TaskStore } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { openStore } from './open-store.ts';
import { storeKinds } from './shared-stores.ts';
import { ShownJournal } from './shown-journal.ts';

const TURNS = 4;
const PIECES = 8;
/** Long enough that a busy machine does not end the lease of a worker that is alive. */
const LEASE_MS = 2_000;

type Event = { readonly type?: string; readonly text?: string; readonly message?: { readonly content: unknown } };

/** Replies for a few turns, a word every few milliseconds; continues where the history stops. */
const talkative: Planner = {
  async next(history: readonly Message[], { emit, token }) {
    const turn = history.filter(({ role }) => role === 'assistant').length;
    let said = '';
    for (let i = 0; i < PIECES && !token.isCancelled; i++) {
      const text = `[${turn}.${i} of ${history.length}]`;
      said += text;
      emit({ type: 'text', text });
      await wait(8);
    }
    const { message } = reply(said);
    const calls = [{ id: `c${turn}`, tool: 'missing', input: {} }];
    if (turn >= TURNS) return reply(said);
    const content = [...message.content, { type: 'call' as const, callId: `c${turn}`, tool: 'missing', input: {} }];
    return { message: { ...message, content, stopReason: 'tool-use' }, calls };
  },
};

/** A store that can be cut off permanently, like after a crash of its process. */
function mortal(store: TaskStore): { store: TaskStore; die: () => void } {
  let isDead = false;
  const cutOff = new Proxy(store, {
    get(_, name: keyof TaskStore) {
      const method: unknown = store[name];
      if (typeof method !== 'function') return method;
      if (name === 'show') return (words: never) => isDead || store.show(words);
      return (...args: unknown[]) =>
        isDead ? Promise.reject(new Error('dead')) : (method as (...all: unknown[]) => unknown).apply(store, args);
    },
  });
  return { store: cutOff, die: () => (isDead = true) };
}

async function readAlong(store: TaskStore, ref: TaskRef, shown: ShownJournal): Promise<void> {
  for await (const one of followTask(store, ref)) if (one.type !== 'end') shown.add(one);
}

test.each(storeKinds.flatMap((kind) => [0, 3, 12, 25].map((diesAfter) => [kind.name, diesAfter, kind] as const)))(
  'a journal on %s that is followed across a crash of its worker after %i entries holds all that was shown',
  async (_name, diesAfter, kind) => {
    await using location = await kind.open();
    await using store = openStore(location.location);
    await using other = openStore(location.location);
    const agents = { talkative: createAgent({ name: 'talkative', planner: talkative }) };
    const timing = { leaseMs: LEASE_MS, pollIntervalMs: 30 };
    const first = mortal(other);
    const receipt = await store.create({ tenant: 'acme', agent: 'talkative', input: 'talk' });
    const ref = { tenant: 'acme', id: (receipt as { task: { id: string } }).task.id };
    const shown = new ShownJournal();
    const reading = readAlong(store, ref, shown);
    const doomed = createRunner({ store: first.store, agents, ...timing });
    const dying = doomed.runExisting(ref).catch(() => 'died');
    await expect.poll(() => shown.entries.length, { interval: 2, timeout: 20_000 }).toBeGreaterThanOrEqual(diesAfter);
    first.die();
    // Only the first one dies: on a busy machine a short lease could also end the other's work.
    await using heir = createRunner({ store, agents, ...timing, leaseMs: 60_000 });
    await heir.serve();
    await reading;
    await dying;
    await doomed[Symbol.asyncDispose]();

    const journal = await store.read(ref, { limit: 10_000 });
    const record = (await store.get(ref))!;
    expect(record.status).toBe('success');
    expect(record.journalBytes).toBe(
      journal.reduce((sum, { event }) => sum + Buffer.byteLength(JSON.stringify(event)), 0),
    );
    const positions = journal.map(({ position }) => position);
    expect(positions).toEqual([...new Set(positions)].toSorted((a, b) => a - b));
    expect(positions.at(-1)).toBe(record.position);
    expect(shown.entries.filter(({ event }) => event.type === 'text').length).toBeGreaterThan(2);
    expect(shown.findProblems(journal)).toEqual([]);
    // Only the ends are left of turns that ended; of the one that the crash cut off, its text.
    const ends = journal.filter(({ event }) => (event as Event).type === 'turn-end');
    expect(ends.length).toBeGreaterThan(TURNS);
    const drafts = journal.filter(({ event }) => (event as Event).type === 'text');
    expect(drafts.filter(({ epoch }) => epoch > 1)).toEqual([]);
  },
);
