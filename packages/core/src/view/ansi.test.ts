import { expect, test } from 'vitest';
import { parseAnsi } from './ansi.ts';

const plain = (output: string): string =>
  parseAnsi(output)
    .map(({ text }) => text)
    .join('');

test('colours and weights become data', () => {
  expect(parseAnsi('ok \u001b[1;32mpassed\u001b[0m\n\u001b[91mfailed\u001b[39m \u001b[2mlater\u001b[22m')).toEqual([
    { text: 'ok ' },
    { text: 'passed', color: 2, bold: true },
    { text: '\n' },
    { text: 'failed', color: 1 },
    { text: ' ' },
    { text: 'later', dim: true },
  ]);
});

test('colours beyond the eight are left out with their parameters', () => {
  expect(parseAnsi('\u001b[38;5;196mx\u001b[38;2;1;2;31my\u001b[4mz')).toEqual([
    { text: 'xy' },
    { text: 'z', underline: true },
  ]);
});

test('only the last state of an overwritten line is kept, even across styles', () => {
  expect(plain('10%\r50%\r\u001b[32m100%\u001b[0m\ndone\r\n')).toBe('100%\ndone\n');
  expect(plain('kept\r')).toBe('kept');
});

test.each([
  ['a cursor movement', 'a\u001b[2J\u001b[H\u001b[5Ab', 'ab'],
  ['a title', 'a\u001b]0;evil\u0007b', 'ab'],
  ['a link', 'a\u001b]8;;http://evil\u001b\\click\u001b]8;;\u001b\\b', 'aclickb'],
  ['a device string', 'a\u001bPq#0\u001b\\b', 'ab'],
  ['a sequence that is cut off', 'a\u001b[3', 'a'],
  ['a one-byte introducer', 'a\u009b31mb', 'ab'],
  ['controls', 'a\u0000\u0007\u0008\u007fb', 'ab'],
  ['text that turns its direction', 'a\u202eb\u2066c', 'abc'],
])('%s leaves nothing behind', (_, output, text) => {
  expect(plain(output)).toBe(text);
});

test('a megabyte of escapes takes no time to speak of', () => {
  const before = process.cpuUsage();
  parseAnsi('\u001b['.repeat(300_000));
  parseAnsi(`${'\u001b[31mx\r'.repeat(100_000)}`);
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1_000).toBeLessThan(5_000);
});
