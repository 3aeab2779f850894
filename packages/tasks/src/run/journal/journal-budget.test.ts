import assert from 'node:assert/strict';
import type { Json } from '@whoa/core';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type SaidEvent, withEntry } from './entry.ts';
import { createJournalBudget, fitEntries, type JournalBudget } from './journal-budget.ts';
import { measureBytes, truncateEntry } from './truncate.ts';

const text = (said: string): Json => ({ type: 'text', text: said });
const update = (callId: string, partial: string): Json => ({ type: 'call-update', callId, partial });
const turnStart: Json = { type: 'turn-start' };
const turnEnd = (...said: string[]): Json => ({
  type: 'turn-end',
  message: { role: 'assistant', content: said.map((one) => ({ type: 'text', text: one })), stopReason: 'stop' },
});
const callEnd = (callId: string, content: string): Json => ({ type: 'call-end', result: { callId, content } });
const nested = (callId: string, event: Json): Json => ({ type: 'call-event', callId, event });

/** A journal as a store keeps it. */
class Kept {
  readonly entries = new Map<number, Json>();
  budget: JournalBudget;
  #said = 0;
  readonly ends: { isFull: boolean; isLossy: boolean } = { isFull: false, isLossy: false };

  constructor(maxBytes = 1_000_000) {
    this.budget = createJournalBudget({ position: 0, bytes: 0, maxBytes });
  }

  /** Writes one batch after another. */
  write(...batches: readonly (readonly Json[])[]): this {
    for (const batch of batches) {
      const waiting = batch
        .map((event): SaidEvent => ({ event, said: ++this.#said }))
        .reduce<SaidEvent[]>(withEntry, []);
      const { events, replaces, budget, isFull, isLossy } = fitEntries(waiting, this.budget);
      for (const position of replaces) assert.ok(this.entries.delete(position));
      for (const [i, { event }] of events.entries()) this.entries.set(this.budget.position + i + 1, event);
      this.budget = budget;
      Object.assign(this.ends, { isFull, isLossy });
    }
    const bytes = this.events.reduce((sum: number, event) => sum + measureBytes(event), 0);
    assert.equal(this.budget.bytes, bytes);
    assert.ok(bytes <= this.budget.maxBytes);
    return this;
  }

  get events(): Json[] {
    return [...this.entries.values()];
  }

  get types(): string[] {
    return this.events.map((event) => (event as { type: string }).type);
  }
}

test('words that were written go when the end of their turn holds them', () => {
  const journal = new Kept().write([turnStart, text('Hel')], [text('lo')], [text(' you'), turnEnd('Hello you')]);
  expect(journal.events).toEqual([turnStart, turnEnd('Hello you')]);
  expect([...journal.entries.keys()]).toEqual([1, 4]);
});

test('words that a reply does not hold stay', () => {
  const journal = new Kept().write([turnStart, text('looking…')], [turnEnd('found it')]);
  expect(journal.types).toEqual(['turn-start', 'text', 'turn-end']);
});

test('words of a turn that never ended stay, even when the next one ends', () => {
  const journal = new Kept().write([turnStart, text('half')], [turnStart, text('wh')], [text('ole'), turnEnd('whole')]);
  expect(journal.events).toEqual([turnStart, text('half'), turnStart, turnEnd('whole')]);
});

test('only the newest state of a call is kept in the budget, and none once it has ended', () => {
  const journal = new Kept().write([update('a', '1'), update('b', '1')], [update('a', '2')], [callEnd('b', 'done')]);
  expect(journal.events).toEqual([update('a', '2'), callEnd('b', 'done')]);
});

test('words of a run inside a call become one, and go only when their turn ends', () => {
  const journal = new Kept().write(
    [turnStart, text('outer')],
    [nested('c', turnStart), nested('c', text('in')), nested('c', text('ner'))],
    [nested('d', text('other'))],
    [nested('c', turnEnd('inner'))],
  );
  expect(journal.events).toEqual([
    turnStart,
    text('outer'),
    nested('c', turnStart),
    nested('d', text('other')),
    nested('c', turnEnd('inner')),
  ]);
});

test('a history that was made shorter replaces the one before', () => {
  const history = (message: string): Json => ({ type: 'history', messages: [message] });
  expect(new Kept().write([history('a')], [turnStart], [history('b')]).events).toEqual([turnStart, history('b')]);
});

test('drafts are omitted when the budget is nearly used, and one marker counts them', () => {
  const journal = new Kept(10_000).write([callEnd('a', 'x'.repeat(500)), callEnd('b', 'y'.repeat(500))]);
  for (let i = 0; i < 9; i++) journal.write([callEnd(`c${i}`, 'z'.repeat(450))]);
  const before = journal.events.length;
  journal.write([text('left out')], [update('d', 'so is this')], [turnEnd('not this')]);
  expect(journal.events.slice(before)).toEqual([
    {
      type: 'journal-truncated',
      entries: 2,
      bytes: measureBytes(text('left out')) + measureBytes(update('d', 'so is this')),
    },
    turnEnd('not this'),
  ]);
  expect(journal.ends).toEqual({ isFull: false, isLossy: false });
});

test('an entry that is too large is truncated and shows by how much', () => {
  const long = 'word '.repeat(2_000);
  const journal = new Kept(100_000).write([turnStart, text(long.slice(0, 5_000))], [turnEnd(long)]);
  const [, draft, end] = journal.events as [Json, Json, { cut: number; message: { content: { text: string }[] } }];
  expect(draft).toEqual(text(long.slice(0, 5_000)));
  expect(measureBytes(end)).toBeLessThanOrEqual(100_000 / 16);
  expect(end.cut).toBeGreaterThan(3_000);
  expect(end.message.content[0]!.text).toMatch(/^word .*… \[\d+ bytes cut]$/s);
});

test('a journal that is nearly full asks for the end and still takes short last words', () => {
  const journal = new Kept(20_000);
  while (!journal.ends.isFull) journal.write([callEnd('c', 'x'.repeat(300))]);
  expect(journal.ends.isLossy).toBe(false);
  journal.write([{ type: 'level-changed', level: 'abort' }, callEnd('last', 'y'.repeat(5_000))]);
  expect(journal.ends.isLossy).toBe(false);
  expect(journal.events.at(-1)).toMatchObject({ type: 'call-end', cut: expect.any(Number) as number });
  while (!journal.ends.isLossy) journal.write([callEnd('c', 'x'.repeat(300))]);
  expect(journal.events.at(-1)).toMatchObject({ type: 'journal-truncated', entries: 1 });
});

test('a truncated entry keeps ids and reports sizes; thinking is removed, images become text', () => {
  const cut = truncateEntry(
    {
      type: 'turn-end',
      message: {
        role: 'assistant',
        content: [
          { type: 'thinking', text: 'hm'.repeat(500), signature: 's' },
          { type: 'text', text: '🙂'.repeat(1_000) },
          { type: 'image', mediaType: 'image/png', data: 'A'.repeat(2_000) },
          { type: 'call', callId: 'c1', tool: 'write', input: { content: 'x'.repeat(3_000) } },
          { type: 'call', callId: 'c2', tool: 'look', input: { at: 1 } },
        ],
        stopReason: 'tool-use',
      },
    },
    1_000,
  ) as { cut: number; message: { content: Record<string, unknown>[] } };
  expect(measureBytes(cut as unknown as Json)).toBeLessThanOrEqual(1_000);
  const [said, image, write, look] = cut.message.content;
  expect(said!['text']).toMatch(/^🙂+… \[\d+ bytes cut\]$/u);
  expect(image).toEqual({ type: 'text', text: expect.stringMatching(/^\[image, 20\d\d bytes cut]$/) as string });
  expect(write).toEqual({ type: 'call', callId: 'c1', tool: 'write', input: { cut: true, bytes: 3_014 } });
  expect(look).toEqual({ type: 'call', callId: 'c2', tool: 'look', input: { at: 1 } });
});

test('an entry that cannot be truncated enough keeps its type and its size', () => {
  const entry = { type: 'odd', many: Array.from({ length: 1_000 }, (_, i) => i) };
  const cut = truncateEntry(entry, 512);
  expect(cut).toEqual({ type: 'odd', cut: measureBytes(entry) - measureBytes({ type: 'odd' }) });
});

test('a journal always stays within its budget, and keeps all text that was shown', () => {
  const word = fc.string({ minLength: 1, maxLength: 300, unit: 'grapheme' });
  const callId = fc.constantFrom('a', 'b');
  type Step = { event: 'text' | 'turn-end' | 'turn-start' | 'update' | 'call-end'; word: string; callId: string };
  const step = fc.record<Step>({
    event: fc.constantFrom('text', 'text', 'text', 'turn-end', 'turn-start', 'update', 'call-end'),
    word,
    callId,
  });
  const property = fc.property(fc.array(fc.array(step, { maxLength: 6 }), { maxLength: 60 }), (batches) => {
    const journal = new Kept(8_192);
    let said = '';
    const shown: string[] = [];
    for (const batch of batches) {
      const events = batch.map((one): Json => {
        if (one.event === 'text') said += one.word;
        const end = turnEnd(said);
        if (one.event === 'turn-end' || one.event === 'turn-start') said = '';
        if (one.event === 'text') return text(one.word);
        if (one.event === 'turn-end') return end;
        if (one.event === 'turn-start') return turnStart;
        return one.event === 'update' ? update(one.callId, one.word) : callEnd(one.callId, one.word);
      });
      const last = journal.budget.position;
      journal.write(events);
      for (const [position, event] of journal.entries) {
        const { type, text: words } = event as { type: string; text?: string };
        if (position > last && type === 'text') shown.push(words!);
      }
    }
    const everything = JSON.stringify(journal.events);
    for (const words of shown) expect(everything).toContain(JSON.stringify(words).slice(1, -1));
  });
  fc.assert(property, { numRuns: 300, seed: 7 });
});
