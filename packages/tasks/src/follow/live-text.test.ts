import type { Json } from '@whoa/core';
import { expect, test } from 'vitest';
import type { Frame } from '../bus/hint.ts';
import type { JournalEntry } from '../task.ts';
import { formatPlace, LiveText, parsePlace, type Seen } from './live-text.ts';

const text = (said: string): Json => ({ type: 'text', text: said });
const step = (name: string): Json => ({ type: 'step', name });

type Claim = Pick<JournalEntry, 'epoch' | 'claimHash'>;
const first: Claim = { epoch: 1, claimHash: 'a1' };
const second: Claim = { epoch: 2, claimHash: 'b2' };
/** The same epoch again, after a failover. */
const again: Claim = { epoch: 2, claimHash: 'c3' };

const entry = (position: number, said: number, event: Json, claim: Claim = first): JournalEntry => {
  return { ...claim, position, said, at: 0, event };
};
const frame = (of: Partial<Frame>, ...events: [said: number, event: Json][]): Frame => {
  const kept = { kept: 0, position: 0, from: 0, to: events.at(-1)?.[0] ?? of.kept ?? 0, at: 0 };
  return { ...first, ...kept, events: events.map(([said, event]) => ({ said, event })), ...of };
};
const record = (position: number, claim: Claim = first, status: 'running' | 'failed' = 'running') => {
  return { ...claim, position, status };
};

/** What is on the page. */
class Page {
  readonly text: LiveText;
  readonly shown: string[] = [];

  constructor(...place: ConstructorParameters<typeof LiveText>) {
    this.text = new LiveText(...place);
  }

  /** Reads as its user does: the record, the entries, then both count. */
  read(of: ReturnType<typeof record>, ...journal: JournalEntry[]): this {
    if (this.text.isRestored(of)) this.#show(this.text.restart());
    const seen = this.text.takeEntries(journal.filter(({ position }) => position > this.text.readAfter));
    if (seen === undefined) {
      this.#show(this.text.restart());
      this.#show(this.text.takeEntries(journal)!);
    } else this.#show(seen);
    this.#show(this.text.takeRecord(of));
    return this;
  }

  take(one: Frame): this {
    const seen = this.text.takeFrame(one);
    if (typeof seen !== 'string') this.#show(seen);
    else this.shown.push(seen === 'read' ? 'READ' : 'AHEAD');
    return this;
  }

  #show(seen: readonly Seen[]): void {
    for (const one of seen) {
      if (one.type === 'taken-back') this.shown.push(`BACK ${one.position} ${one.said}`);
      else this.shown.push((one.event as { text?: string }).text ?? JSON.stringify(one.event));
    }
  }
}

test('words of frames and of the journal are one text', () => {
  const page = new Page().read(record(0));
  page.take(frame({}, [3, text('one')])).take(frame({ from: 3 }, [7, text(' two')]));
  page.read(record(1), entry(1, 9, text('one two 3')));
  expect(page.shown).toEqual(['one', ' two', ' 3']);
});

test('a word that straddles is cut, in a frame and in an entry, and a surrogate pair is not lost', () => {
  const page = new Page().read(record(0)).take(frame({}, [2, text('ab')]));
  page.take(frame({ from: 1 }, [4, text('bcd')])).take(frame({ from: 4 }, [5, text('😀'[0]!)]));
  page.read(record(1), entry(1, 7, text('abcd😀e')));
  expect(page.shown.join('')).toBe('abcd😀e');
});

test('nested words are cut in the same way', () => {
  const nested = (said: string): Json => ({ type: 'call-event', callId: 'c', event: text(said) }) as Json;
  const text1 = new LiveText();
  text1.takeRecord(record(0));
  text1.takeFrame(frame({}, [2, nested('ab')]));
  expect(text1.takeEntries([entry(1, 3, nested('abc'))])).toMatchObject([{ event: nested('c') }]);
});

test('another event counts one, and is shown once', () => {
  const page = new Page().read(record(0)).take(frame({}, [1, step('a')], [3, text('hi')]));
  page.take(frame({}, [1, step('a')], [3, text('hi')], [4, step('b')]));
  page.read(record(3), entry(1, 1, step('a')), entry(2, 3, text('hi')), entry(3, 4, step('b')));
  expect(page.shown).toEqual([JSON.stringify(step('a')), 'hi', JSON.stringify(step('b'))]);
});

test('a frame behind a gap waits, and the frame of the next append brings the read', () => {
  const page = new Page().read(record(0)).take(frame({ from: 5 }, [8, text('lost')]));
  expect(page.shown).toEqual(['AHEAD']);
  page.take(frame({ kept: 8, position: 1, from: 8 }));
  expect(page.shown).toEqual(['AHEAD', 'READ']);
});

test('a reader that keeps up confirms an append without a read', () => {
  const page = new Page().read(record(0)).take(frame({}, [5, text('hello')]));
  page.take(frame({ kept: 5, position: 1, from: 5, to: 5 }));
  expect(page.text.place).toMatchObject({ position: 1, last: 'a1', said: 5 });
  expect(page.read(record(1, second)).shown).toEqual(['hello']);
});

test('a frame confirms what its journal has, and nothing of what it adds', () => {
  const page = new Page().read(record(0)).take(frame({}, [3, text('abc')]));
  page.take(frame({ kept: 3, position: 1, from: 3 }, [6, text('def')])).read(record(1, second));
  expect(page.shown).toEqual(['abc', 'def', 'BACK 1 3']);
});

test('what is not confirmed is taken back once: by a newer claim in the record, in an entry, or by an end', () => {
  const ends: ((page: Page) => Page)[] = [
    (page) => page.read(record(1, second), entry(1, 3, text('abc'))),
    (page) => page.read(record(2, second), entry(1, 3, text('abc')), entry(2, 1, text('x'), second)),
    (page) => page.read(record(1, first, 'failed'), entry(1, 3, text('abc'))),
  ];
  for (const end of ends) {
    const page = new Page().read(record(0)).take(frame({}, [6, text('abcdef')]));
    end(end(page));
    expect(page.shown.slice(0, 2)).toEqual(['abcdef', 'BACK 1 3']);
    expect(page.shown.filter((one) => one.startsWith('BACK'))).toHaveLength(1);
  }
});

test('an end whose worker had written everything takes nothing back', () => {
  const page = new Page().read(record(0)).take(frame({}, [3, text('abc')]));
  expect(page.read(record(1, first, 'failed'), entry(1, 3, text('abc'))).shown).toEqual(['abc']);
});

test("an old claim's frame is dropped, and a newer one's brings a read, but changes nothing", () => {
  const page = new Page().read(record(0, second)).take(frame({}, [3, text('old')]));
  page.take(frame({ epoch: 3, claimHash: 'd4' }, [3, text('new')]));
  expect(page.shown).toEqual(['READ']);
  expect(page.text.place).toMatchObject(second);
});

test("a newer claim's frame before the last entries of the old one does not hide them", () => {
  const page = new Page().read(record(0)).take(frame({ ...second }, [1, text('n')]));
  page.read(record(1, second), entry(1, 3, text('old'))).take(frame({ ...second }, [1, text('n')]));
  expect(page.shown).toEqual(['READ', 'old', 'n']);
});

test('the same epoch with another claim is another worker: its frames are dropped, its record starts anew', () => {
  const page = new Page().read(record(0, second)).take(frame({ ...again }, [3, text('not')]));
  page.take(frame({ ...second }, [2, text('ab')]));
  page.read(record(1, again), entry(1, 1, text('x'), again));
  expect(page.shown).toEqual(['ab', 'BACK 0 0', 'x']);
});

test('a restored ledger starts anew: by its position, its epoch, or the claim of the last entry', () => {
  const journal = [entry(1, 1, text('a')), entry(2, 2, text('b'), second)];
  const restored: [ReturnType<typeof record>, ...JournalEntry[]][] = [
    [record(1), journal[0]!],
    [record(2, first), journal[0]!, entry(2, 2, text('c'))],
    [record(2, { epoch: 3, claimHash: 'd4' }), journal[0]!, entry(2, 1, text('c'), again)],
  ];
  for (const [of, ...entries] of restored) {
    const page = new Page().read(record(2, second), ...journal).read(of, ...entries);
    expect(page.shown.slice(0, 4)).toEqual(['a', 'b', 'BACK 0 0', 'a']);
  }
});

test('an entry that was left out by its marker is not waited for', () => {
  const page = new Page().read(record(0)).take(frame({}, [4, text('gone')]));
  const marker = { type: 'journal-truncated', entries: 1, bytes: 9 };
  page.read(record(1), entry(1, 4, marker)).take(frame({ kept: 4, position: 1, from: 4 }, [6, text('on')]));
  expect(page.shown).toEqual(['gone', 'on']);
});

test('of a cut text nothing is guessed: a reader that has a part of it waits for the end of the turn', () => {
  const cut = { ...(text('abc… [9 bytes cut]') as object), cut: 9 } as Json;
  const page = new Page().read(record(0)).take(frame({}, [2, text('ab')]));
  page.read(record(1), entry(1, 12, cut)).take(frame({ kept: 12, position: 1, from: 12 }, [13, text('!')]));
  expect(page.shown).toEqual(['ab', '!']);
  expect(new Page().read(record(1), entry(1, 12, cut)).shown).toEqual(['abc… [9 bytes cut]']);
});

test('a reader at a position continues there, and knows from its entry what was said', () => {
  const page = new Page({ position: 1 }).read(record(1), entry(1, 3, text('abc')));
  page.take(frame({ kept: 3, position: 1, from: 3 }, [5, text('de')]));
  expect(page.shown).toEqual(['de']);
});

test('a reader at a place continues there on another server: nothing is repeated, and a lost draft is taken back', () => {
  const before = new Page().read(record(1), entry(1, 3, text('abc')));
  before.take(frame({ kept: 3, position: 1, from: 3 }, [5, text('de')]));
  const place = parsePlace(formatPlace(before.text.place))!;
  const page = new Page(place).read(record(1), entry(1, 3, text('abc')));
  page.take(frame({ kept: 3, position: 1, from: 3 }, [6, text('def')]));
  expect(page.shown).toEqual(['f']);
  const late = new Page(place).read(record(1, second), entry(1, 3, text('abc')));
  expect(late.shown).toEqual(['BACK 1 3']);
});

test('each thing that is seen has the place behind it, so a reader can continue in the middle of a page', () => {
  const journal = [entry(1, 1, step('a')), entry(2, 4, text('bcd')), entry(3, 5, step('e'))];
  const seen = new LiveText().takeEntries(journal)!;
  for (const [index, { place }] of seen.entries())
    expect(new LiveText(place).takeEntries(journal)).toEqual(seen.slice(index + 1));
  const live = new LiveText();
  live.takeRecord(record(0));
  const frames = frame({}, [1, step('a')], [3, text('bc')]);
  const [first] = live.takeFrame(frames) as Seen[];
  const late = new LiveText(first!.place);
  expect(late.takeFrame(frames)).toMatchObject([{ event: text('bc') }]);
});

test('a place is a text, and other texts are none', () => {
  const place = { position: 12, last: 'ab', epoch: 3, claimHash: 'cd', said: 400 };
  expect(formatPlace(place)).toBe('12.ab.3.cd.400');
  expect(parsePlace('12.ab.3.cd.400')).toEqual(place);
  expect(parsePlace('12')).toEqual({ position: 12 });
  for (const wrong of ['', '-1', '1.2', '1.ab.3.cd', '1.ab.3.cd.4.5', 'x', '1.AB.3.cd.4', '1e3'])
    expect(parsePlace(wrong)).toBeUndefined();
});
