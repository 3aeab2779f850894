import { expect, test } from 'vitest';
import { boundContent, boundDetails, MAX_DETAILS_BYTES } from './bounds.ts';

test('content within the limit is not copied', () => {
  const parts = [
    { type: 'text', text: 'ab' },
    { type: 'image', mediaType: 'image/png', data: 'AAAA' },
    { type: 'text', text: 'cd' },
  ] as const;
  expect(boundContent(parts, 4)).toBe(parts);
  expect(boundContent('abcd', 4)).toBe('abcd');
});

test('a text that is too long keeps its head and tail, and the marker shows how much is missing', () => {
  expect(boundContent('abcdefg', 5)).toBe('ab\n[… 3 of 7 characters cut …]\nfg');
  expect(boundContent('abc', 1)).toBe('\n[… 3 of 3 characters cut …]\n');
  expect(boundContent('a😀😀b', 4)).toBe('a\uFFFD\n[… 2 of 6 characters cut …]\n\uFFFDb');
});

test('parts share one limit: complete parts stay, truncated ones are frozen', () => {
  const whole = { type: 'text', text: 'abc' } as const;
  const image = { type: 'image', mediaType: 'image/png', data: 'AAAA' } as const;
  const content = boundContent([whole, image, { type: 'text', text: 'defg' }, { type: 'text', text: 'h' }], 5);
  expect(content).toEqual([
    whole,
    image,
    { type: 'text', text: 'd\n[… 2 of 4 characters cut …]\ng' },
    { type: 'text', text: '\n[… 1 of 1 characters cut …]\n' },
  ]);
  expect(content[0]).toBe(whole);
  expect([content, content[2]].every(Object.isFrozen)).toBe(true);
});

test.each([
  ['x', MAX_DETAILS_BYTES - 2],
  ['€', Math.floor((MAX_DETAILS_BYTES - 2) / 3)],
])('details of %s may have as many bytes as the limit and not one more', (character, length) => {
  const most = character.repeat(length);
  expect(boundDetails(most)).toBe(most);
  const bytes = new TextEncoder().encode(most).length + 2 + new TextEncoder().encode(character).length;
  const cut = boundDetails(most + character);
  expect(cut).toEqual({ cut: 'the details were too large', bytes, maxBytes: MAX_DETAILS_BYTES });
  expect(Object.isFrozen(cut)).toBe(true);
});
