import { afterEach, expect, test, vi } from 'vitest';
import { PasteFilter } from './paste-filter.ts';

const PASTE = '\x1b[200~one\rtwo \x1b[31m\x1b[201~';

afterEach(() => void vi.useRealTimers());

function setUp() {
  vi.useFakeTimers();
  const seen: string[] = [];
  return { seen, filter: new PasteFilter((keys) => seen.push(keys)) };
}

test('a paste between keys is one text, wherever the input is split', () => {
  const input = `a\x1b[A${PASTE}b\r`;
  for (let at = 1; at < input.length; at++) {
    const { seen, filter } = setUp();
    filter.write(input.slice(0, at));
    filter.write(input.slice(at));
    expect(seen.join('')).toBe('a\x1b[Aone⏎two [31mb\r');
    expect(seen).toContain('one⏎two [31m');
  }
  const { seen, filter } = setUp();
  for (const character of input) filter.write(character);
  expect(seen.join('')).toBe('a\x1b[Aone⏎two [31mb\r');
});

test('Esc arrives alone after a short wait, as often as it was pressed, right after a paste too', () => {
  const { seen, filter } = setUp();
  filter.write(`${PASTE}\x1b`);
  vi.advanceTimersByTime(49);
  expect(seen).toHaveLength(1);
  vi.advanceTimersByTime(1);
  filter.write('\x1b\x1b');
  vi.advanceTimersByTime(50);
  filter.write('\x1b[');
  vi.advanceTimersByTime(50);
  expect(seen.slice(1)).toEqual(['\x1b', '\x1b', '\x1b', '\x1b[']);
  expect(vi.getTimerCount()).toBe(0);
});

test('Ctrl-C works in a paste whose end is lost', () => {
  const { seen, filter } = setUp();
  filter.write('\x1b[200~one');
  filter.write('\x03');
  expect(seen).toEqual(['\x03']);
});

test('a paste that is too long is cut, and its label shows it', () => {
  const { seen, filter } = setUp();
  filter.write('\x1b[200~');
  for (let count = 0; count < 11; count++) filter.write('x'.repeat(100_000));
  filter.write('\x1b[201~');
  expect(seen).toEqual(['[paste 1: 1,000,000 characters, cut]']);
  expect(filter.expand(seen[0]!).text).toHaveLength(1_000_000);
});
