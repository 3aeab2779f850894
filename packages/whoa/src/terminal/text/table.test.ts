import { expect, test } from 'vitest';
import { formatTable } from './table.ts';

const HEADINGS = ['TASK', 'AGENT', 'INPUT'];
const ROWS = [['t-12345678', 'assistant', 'What is the answer to everything?']];

test('a table is as wide as it needs, and its last column gets the rest', () => {
  expect(formatTable(['A', 'LONG', 'C'], [['aaaa', 'b', 'c'.repeat(50)]], { width: 40 })).toEqual([
    'A     LONG  C',
    `aaaa  b     ${'c'.repeat(27)}…`,
  ]);
});

test('less important columns are dropped when the terminal is narrow, and no line wraps', () => {
  const lines = formatTable(HEADINGS, ROWS, { width: 32, dropOrder: [1] });
  expect(lines).toEqual(['TASK        INPUT', 't-12345678  What is the answer …']);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(32);
});
