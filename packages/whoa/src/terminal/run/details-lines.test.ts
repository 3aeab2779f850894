import type { CallResult, Json } from '@whoa/core';
import { expect, test } from 'vitest';
import { hostileStrings } from '../../../../../test/hostile-strings.ts';
import { findObeyed } from '../../../../../test/hostile-text.ts';
import { rendered } from '../boundary.ts';
import { measureColumns } from '../text/wrap.ts';
import { detailsLines } from './details-lines.ts';

const look = {
  columns: 60,
  style: (style: unknown, text: string) => (style === 'dim' ? text : `<${String(style)}:${text}>`),
};

function lines(
  details: Json | undefined,
  { content = '', isFull = false, ...more }: Partial<CallResult> & { isFull?: boolean } = {},
) {
  const result = {
    callId: 'c',
    tool: 't',
    state: 'finished',
    isError: false,
    endedAt: 0,
    content,
    ...more,
  } as CallResult;
  return detailsLines({ ...result, ...(details !== undefined && { details }) }, look, { isFull }).map((line) =>
    line.replace('  │ ', ''),
  );
}

const DIFF = '@@ -9,3 +9,3 @@\n one\n-two\n+2\n three\n';

test('a change is a coloured diff with its line numbers', () => {
  expect(lines({ path: 'a.ts', diff: DIFF, linesAdded: 1, linesRemoved: 1 })).toEqual([
    'changed a.ts +1 -1',
    ' 9   one',
    '<red:10 - two>',
    '<green:10 + 2>',
    '11   three',
  ]);
});

test('the last lines of an output are shown, with colours and the path of its log', () => {
  const tail = `${Array.from({ length: 20 }, (_, i) => `line ${i}`).join('\n')}\n\u001b[31mred\u001b[0m end\n`;
  const output = { head: '', tail, bytes: 1, lines: 21, omittedBytes: 0 };
  const details = { command: 'x', exitCode: 2, output, logPath: '/state/logs/x.log' };
  const short = lines(details, { isError: true });
  expect(short).toHaveLength(10);
  expect(short[0]).toBe('… 13 more lines; --output full shows them');
  expect(short.slice(-2)).toEqual(['<red:red> end', 'all of it: /state/logs/x.log']);
  expect(lines(details, { isFull: true })).toHaveLength(22);
  expect(lines({ command: 'x', exitCode: 0, output: { ...output, tail: 'fine\n' } })).toEqual(['fine']);
});

test('a search has its counts, and a plan its states', () => {
  const matches = Array.from({ length: 7 }, (_, i) => ({ path: 'a.ts', line: i, text: ' x' }));
  const found = lines({ pattern: 'x', totalMatches: 7, totalFiles: 1, matches });
  expect(found.slice(0, 2)).toEqual(['7 matches of x in 1 file', 'a.ts:0: x']);
  expect(found.at(-1)).toBe('… 2 more lines; --output full shows them');
  expect(lines({ plan: [{ content: 'look', status: 'completed' }, { content: 'act' }] })).toEqual([
    '☑ look',
    '<white:☐ act>',
  ]);
});

test('calls that were not started or failed without output have no details', () => {
  expect(lines(undefined, { state: 'not-started', content: 'Not started' })).toEqual([]);
  expect(lines(undefined, { isError: true, state: 'failed', content: 'no such file' })).toEqual([]);
});

test.each([false, true])('no hostile string leaves its line or is obeyed, in any field (full: %s)', (isFull) => {
  const wrong: string[] = [];
  for (const text of hostileStrings) {
    const diff = `@@ -1,1 +1,1 @@\n-${text}\n+${text}\n`;
    const all = [
      { path: text, diff, linesAdded: 1, linesRemoved: 1 },
      {
        command: text,
        exitCode: 1,
        logPath: text,
        output: { head: text, tail: text, bytes: 1, lines: 1, omittedBytes: 1 },
      },
      { pattern: text, totalMatches: 1, totalFiles: 1, matches: [{ path: text, line: 1, text }] },
      { plan: [{ content: text }] },
      { files: [text] },
      { path: text, firstLine: 1, lines: 2, bytes: 4 },
      { other: text },
    ];
    for (const details of [undefined, ...all]) {
      const result = { callId: 'c', tool: 't', state: 'finished', isError: false, endedAt: 0, content: text, details };
      for (const line of detailsLines(result as CallResult, { columns: 60, style: (_, shown) => shown }, { isFull })) {
        const shown = rendered(line);
        const isRight = /^ {2}│ [^\n\t]*$/.test(shown) && measureColumns(shown.slice(4)) < 56;
        // One assertion for each of the many lines would take most of the time.
        if (!isRight || findObeyed(shown).length > 0) wrong.push(shown);
      }
    }
  }
  expect(wrong).toEqual([]);
});
