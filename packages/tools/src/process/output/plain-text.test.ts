import fc from 'fast-check';
import { expect, test } from 'vitest';
import { plainText } from './plain-text.ts';

test('colours, titles and cursor movements are taken out', () => {
  expect(
    plainText('\u001b[31mred\u001b[0m \u001b]0;title\u0007plain \u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\'),
  ).toBe('red plain link');
  expect(plainText('\u001bPq#0;2;0\u001b\\after \u001b(Bcharset')).toBe('after charset');
});

test('a sequence that was cut off leaves nothing behind', () => {
  expect(plainText('end\u001b[38;5')).toBe('end');
  expect(plainText('end\u001b]0;half a tit')).toBe('end');
  expect(plainText('end\u001b')).toBe('end');
});

test('a progress bar shows only its last state', () => {
  expect(plainText('10%\r50%\r100%\ndone\r\nlast\r')).toBe('100%\ndone\nlast');
});

test('text that is not terminal language is unchanged', () => {
  const ordinary = fc.string({ unit: 'grapheme' }).filter((text) => !/\p{Cc}/u.test(text));
  fc.assert(fc.property(fc.array(ordinary), (lines) => plainText(lines.join('\n')) === lines.join('\n')));
});

test('no control character ever comes through', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => !/[^\P{Cc}\t\n]/u.test(plainText(text))));
});
