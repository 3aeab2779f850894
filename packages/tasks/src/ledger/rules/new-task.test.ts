import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { toTitle } from './new-task.ts';

test('a title is one line', () => {
  expect(toTitle('  Book\r\n a\ttable\u2028for\u0085two\u0000 ')).toBe('Book a table for two');
});

test('a title of 120 characters stays whole, and a longer one ends in a mark', () => {
  expect(toTitle('x'.repeat(120))).toBe('x'.repeat(120));
  expect(toTitle('x'.repeat(121))).toBe(`${'x'.repeat(119)}…`);
  expect(toTitle(`${'x'.repeat(118)} yy`)).toBe(`${'x'.repeat(118)}…`);
});

test('a title never has half a character, whatever the text has', () => {
  expect(toTitle(`x${'🙂'.repeat(100)}`)).toBe(`x${'🙂'.repeat(59)}…`);
  expect(toTitle('a \ud83d b')).toBe('a \ufffd b');
  expect(toTitle(`${'x'.repeat(118)}\ud83d\ud83d\ud83d`)).toBe(`${'x'.repeat(118)}…`);
});

test.each([
  [
    'the parts of a text',
    [
      { type: 'text', text: 'one' },
      { type: 'image', data: '…' },
      { type: 'text', text: 'two' },
    ],
  ],
  ['a message of a user', { role: 'user', content: 'one two' }],
  [
    'a message with parts',
    { role: 'user', content: [{ type: 'text', text: 'one' }, null, { type: 'text', text: 'two' }] },
  ],
  [
    'a message of a chat',
    {
      id: 'm',
      role: 'user',
      parts: [
        { type: 'text', text: 'one' },
        { type: 'text', text: 'two' },
      ],
    },
  ],
])('the title of %s is its text', (_name, input) => {
  expect(toTitle(input)).toBe('one two');
});

test.each([undefined, null, 0, true, '', ' \n ', [], {}, [[]], { text: 'x' }, { role: 'assistant', content: 'x' }])(
  'input without text has no title: %j',
  (input) => {
    expect(toTitle(input)).toBeUndefined();
  },
);

test.each([
  { role: 'user' },
  { role: 'user', content: 7 },
  { role: 'user', parts: {} },
  [7, { type: 'text', text: 7 }],
])('invalid input has no title: %j', (input) => {
  expect(toTitle(input)).toBeUndefined();
});

test('a title of any text is short, well-formed and on one line', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 400, size: 'max' }), (text) => {
      const title = toTitle(text) ?? 'none';
      expect(title.length).toBeLessThanOrEqual(120);
      expect(title.isWellFormed()).toBe(true);
      expect(title).not.toMatch(/[\n\r\t\p{Cc}\u2028\u2029]|^\s|\s$|\s\s/u);
    }),
  );
});
