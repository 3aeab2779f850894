import { createAgent, type Json, type Message, sleep } from '@whoa/core';
import { type Planner, reply } from '@whoa/core/model';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { claimFor, expireSessions } from '../../../../test/tasks/claimed.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import type { TaskStore } from '../store.ts';
import type { JournalEntry } from '../task.ts';
import { createRunner } from './store-runner.ts';
import type { TaskHandler } from './work.ts';

const TASK = { tenant: 'acme', agent: 'assistant', input: 'hello' };

function setUp(
  work: TaskHandler | Planner,
  options: { maxJournalBytes?: number; compact?: (m: readonly Message[]) => readonly Message[] } = {},
) {
  const world = createVirtualWorld();
  const { compact, ...storeOptions } = options;
  const store = createMemoryStore({ world, ...storeOptions });
  const assistant =
    typeof work === 'object' && 'next' in work
      ? createAgent({ name: 'assistant', planner: work, world, ...(compact && { compact }) })
      : (work as TaskHandler);
  const runner = createRunner({ store, agents: { assistant }, world });
  return { world, store, runner };
}

const readRef = async (store: TaskStore) => {
  const { id } = (await store.list({ tenant: 'acme' })).tasks[0]!;
  return { tenant: 'acme', id };
};

const getTypes = (journal: readonly JournalEntry[]): unknown[] =>
  journal.map(({ event }) => (event as { type?: Json }).type);

test('a reader sees words as they come, and afterwards the journal has each of them once', async () => {
  const words = ['one ', 'two ', 'three ', 'four'];
  const { world, store, runner } = setUp({
    async next(_history, { token, emit }) {
      for (const text of words) {
        emit({ type: 'text', text });
        await sleep(1_000, { clock: token.clock, token });
      }
      return reply(words.join(''));
    },
  });
  const running = runner.run(TASK);
  await flushMicrotasks();
  const ref = await readRef(store);
  const seen: JournalEntry[] = [];
  await store.watch({ ...ref, words: true }, () => {});
  for (let second = 0; second <= words.length; second++) {
    seen.push(...(await store.read(ref, { after: seen.at(-1)?.position ?? 0 })));
    await world.clock.advance(1_000);
  }
  await running;
  seen.push(...(await store.read(ref, { after: seen.at(-1)!.position })));
  const shown = seen.flatMap(({ event }) => ('text' in (event as object) ? [(event as { text: string }).text] : []));
  expect(words.join('').startsWith(shown.join(''))).toBe(true);
  expect(shown.length).toBeGreaterThan(1);
  const journal = await store.read(ref);
  expect(getTypes(journal)).not.toContain('text');
  expect(JSON.stringify(journal)).toContain(words.join(''));
  expect(seen.map(({ position }) => position)).toEqual(seen.map(({ position }) => position).toSorted((a, b) => a - b));
});

test('a run whose journal is full is stopped for its budget, and its end reports it', async () => {
  const { store, runner } = setUp(
    async ({ journal, token }) => {
      for (;;) {
        token.throwIfCancelled();
        await journal({ type: 'step', text: 'x'.repeat(400) });
      }
    },
    { maxJournalBytes: 50_000 },
  );
  const response = await runner.run(TASK);
  expect(response.status).toBe('cancelled');
  const record = (await store.get(await readRef(store)))!;
  expect(record.outcome?.reason).toMatchObject({
    kind: 'budget',
    message: expect.stringContaining('maxJournalBytes') as string,
  });
  expect(record.journalBytes).toBeLessThanOrEqual(50_000);
  expect(record.journalBytes).toBeGreaterThan(40_000);
});

test('work that keeps writing into a full journal is notified, and missing entries are counted', async () => {
  let refused: unknown;
  const { store, runner } = setUp(
    async ({ journal }) => {
      try {
        for (;;) await journal({ type: 'step', text: 'x'.repeat(400) });
      } catch (error) {
        refused = error;
      }
      return 'done all the same';
    },
    { maxJournalBytes: 20_000 },
  );
  await runner.run(TASK);
  expect(refused).toMatchObject({ code: 'JOURNAL_FULL' });
  const ref = await readRef(store);
  expect((await store.get(ref))?.outcome).toMatchObject({ status: 'success', answer: 'done all the same' });
  const last = (await store.read(ref)).at(-1)!.event;
  expect(last).toMatchObject({ type: 'journal-truncated', entries: 1, bytes: expect.any(Number) as number });
});

test('after a crash the model sees the history that the lost worker had made shorter', async () => {
  const seen: (readonly Message[])[] = [];
  const planner: Planner = {
    async next(history, { token }) {
      seen.push([...history]);
      if (seen.length < 3) await sleep(1_000_000, { clock: token.clock, token });
      return reply('done');
    },
  };
  const summary: Message = { role: 'user', content: 'what was said, in short' };
  const { world, store, runner } = setUp(planner, {
    compact: (messages) => (messages.length > 3 ? [summary] : messages),
  });
  const created = await store.create({ ...TASK, conversation: 'c' });
  const { id } = (created as { task: { id: string } }).task;
  const ref = { tenant: 'acme', id };
  const claim = await claimFor(store, id, { worker: 'dead', leaseMs: 1_000 });
  const turn = { role: 'assistant', content: [{ type: 'text', text: 'hm' }], stopReason: 'tool-use' };
  const events = [
    { type: 'run-start', input: { role: 'user', content: 'hello' } },
    { type: 'history-compacted', before: 9, after: 1 },
    { type: 'history', messages: [summary] },
    { type: 'turn-end', turn: 1, message: turn },
  ] as unknown as Json[];
  await store.append(claim, { after: 0, events });
  await expireSessions(store, world, 1_000);
  const working = runner.runExisting(ref);
  await flushMicrotasks();
  expect(seen[0]).toMatchObject([summary, turn, { role: 'user' }]);
  await store.cancel(ref, {}, { mode: 'kill' });
  await world.clock.advance(1_000);
  await working;
  const history = (await store.conversation({ tenant: 'acme', conversation: 'c' }))!.history;
  expect(history.slice(0, 2)).toMatchObject([summary, turn]);
});

test('a history that is made shorter is in the journal, the last one only', async () => {
  let turns = 0;
  const { store, runner } = setUp(
    { next: (_history, { turn }) => (turn < 4 ? { ...reply(`turn ${turn}`), calls: [] } : reply('end')) },
    { compact: (messages) => [{ role: 'user', content: `compacted ${++turns} of ${messages.length}` }] },
  );
  await runner.run(TASK);
  const journal = await store.read(await readRef(store));
  expect(getTypes(journal).filter((type) => type === 'history')).toHaveLength(1);
  const compacted = journal.find(({ event }) => (event as { type: string }).type === 'history-compacted')!.event;
  expect(compacted).not.toHaveProperty('messages');
});
