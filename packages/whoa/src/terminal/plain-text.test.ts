import { expect, test } from 'vitest';
import { oneLine, plainText } from './plain-text.ts';

test('nothing from outside can command the terminal or turn what is read', () => {
  const evil = 'a\x1b[2Jb\x9b31mc\rd\x07e\u202ef\u2066g\x00h\x7f';
  expect(plainText(evil)).toBe('a�[2Jb�31mc�d�e�f�g�h�');
});

test('lines, tabs and words of every language stay', () => {
  expect(plainText('one\r\ntwo\n\tdrei größer 日本 🙂')).toBe('one\ntwo\n\tdrei größer 日本 🙂');
});

test('many lines become one, at most so long', () => {
  expect(oneLine('  a\n  b\n', 20)).toBe('a ⏎ b');
  expect(oneLine('abcdef', 4)).toBe('abc…');
});
