import { expect, test } from 'vitest';
import type { Json } from '../tool/result.ts';
import { toDetailsView } from './details-view.ts';

const DIFF = '--- a.ts\n+++ a.ts\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n\\ No newline at end of file\n';

test('a change of a file is a diff with its line numbers', () => {
  expect(toDetailsView({ path: 'a.ts', diff: DIFF, linesAdded: 1, linesRemoved: 1 })).toEqual({
    kind: 'diff',
    path: 'a.ts',
    isNew: false,
    added: 1,
    removed: 1,
    hunks: [
      {
        oldStart: 1,
        newStart: 1,
        lines: [
          { kind: 'context', text: 'one', oldLine: 1, newLine: 1 },
          { kind: 'remove', text: 'two', oldLine: 2 },
          { kind: 'add', text: '2', newLine: 2 },
          { kind: 'context', text: 'three', oldLine: 3, newLine: 3 },
        ],
      },
    ],
  });
});

test('two texts are a diff, and a file without an old text is new', () => {
  expect(toDetailsView({ path: 'a', newText: 'x\ny\n' })).toMatchObject({
    kind: 'diff',
    isNew: true,
    added: 2,
    removed: 0,
  });
  expect(toDetailsView({ path: 'a', oldText: 'x', newText: '' })).toMatchObject({ isNew: false, added: 0, removed: 1 });
});

test('a change too large to compare keeps its counts', () => {
  const view = toDetailsView({ path: 'a', created: true, diff: null, linesAdded: 9_000, linesRemoved: 0 });
  expect(view).toMatchObject({ kind: 'diff', isNew: true, added: 9_000, hunks: [] });
});

test('a command’s output shows how it ended and where the full log is', () => {
  const output = { head: 'first\n', tail: 'last\n', bytes: 70_000, lines: 900, omittedBytes: 60_000 };
  const cleanup = { verified: 'yes', ended: 4, survivors: 0 };
  const details = { command: 'npm test', exitCode: null, signal: 'SIGKILL', output, cleanup, logPath: '/tmp/log' };
  expect(toDetailsView(details)).toEqual({
    kind: 'output',
    command: 'npm test',
    ...output,
    exit: 'ended by SIGKILL',
    logPath: '/tmp/log',
    processesEnded: 4,
    survivors: 0,
  });
  expect(toDetailsView({ output: { tail: 'so far' } })).not.toHaveProperty('exit');
});

test('a search keeps its totals', () => {
  const matches = [{ path: 'a.ts', line: 4, column: 2, text: ' x' }, { path: 7 }, 'nonsense'];
  const view = toDetailsView({ pattern: 'x', totalMatches: 12, totalFiles: 3, truncated: true, matches });
  expect(view).toEqual({
    kind: 'matches',
    pattern: 'x',
    total: 12,
    files: 3,
    isPartial: true,
    matches: [{ path: 'a.ts', line: 4, column: 2, text: ' x' }],
  });
});

test('lists of files, a file that was read, and a plan', () => {
  expect(toDetailsView({ files: ['a', 'b'], truncated: false })).toEqual({
    kind: 'files',
    paths: ['a', 'b'],
    isPartial: false,
  });
  expect(
    toDetailsView({
      path: '.',
      entries: [
        { name: 'src', kind: 'folder' },
        { name: 'a', kind: 'file' },
      ],
    }),
  ).toMatchObject({
    paths: ['src/', 'a'],
  });
  expect(toDetailsView({ path: 'a', firstLine: 1, lines: 2, bytes: 4 }, 'x\ny')).toEqual({
    kind: 'file',
    path: 'a',
    lines: 2,
    bytes: 4,
    text: 'x\ny',
  });
  expect(toDetailsView({ plan: [{ content: 'look' }, { content: 'act', status: 'done', priority: 'high' }] })).toEqual({
    kind: 'plan',
    entries: [
      { content: 'look', status: 'pending', priority: 'medium' },
      { content: 'act', status: 'pending', priority: 'high' },
    ],
  });
});

test('images are shown, other details are JSON, and no details are the text', () => {
  const image = { type: 'image', mediaType: 'image/png', data: 'aGk=' } as const;
  expect(toDetailsView({ path: 'a.png' }, [{ type: 'text', text: 'a.png' }, image])).toEqual({
    kind: 'images',
    images: [{ mediaType: 'image/png', data: 'aGk=' }],
    text: 'a.png',
  });
  expect(toDetailsView({ eventId: 'e1' }, 'Booked')).toEqual({
    kind: 'json',
    value: { eventId: 'e1' },
    text: 'Booked',
  });
  expect(toDetailsView(undefined, 'Done')).toEqual({ kind: 'text', text: 'Done' });
});

test.each<Json>([
  null,
  [],
  7,
  'text',
  { path: 1, diff: 2 },
  { output: null },
  { output: { tail: 3 } },
  { matches: {} },
  { plan: 'later' },
  { plan: [null, 3, { content: {} }] },
  { files: [null, {}, { name: 3 }] },
  { path: '', firstLine: 'x' },
])('nonsense is shown, not thrown: %j', (details) => {
  expect(() => toDetailsView(details, 'text')).not.toThrow();
});
