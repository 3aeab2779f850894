import { expect, test } from 'vitest';
import { findUnplain, findUnplainInCode, findUnplainInComments, readPlainWords } from '../scripts/plain-words.ts';

const words = readPlainWords();
const find = (text: string): string[] => findUnplain('a.md', text, words).map((line) => line.split(';')[0]!);

test('a phrase is found with its line and what to write instead', () => {
  expect(findUnplain('a.md', '# Stop\n\nThe run goes on.\n', words)).toEqual([
    "a.md:3: 'goes on'; write: continues; keeps running",
  ]);
});

test('every phrase of the list finds the sentence that it is for', () => {
  const sentences = [
    'It shows what became of it.',
    'The work went on.',
    'It starts anew.',
    'Text is kept as far as it arrived.',
    'It has a port of its own.',
    'Mend the cause.',
    'It stops, also if it failed.',
    'The model is told.',
    'The report says so.',
    'All of them stop at once.',
    'A folder beside the file.',
    'Nobody reads it.',
    'The call is waited for.',
    'The call is asked about.',
    'A worker hands its tasks back.',
    'The response came too late.',
    'It is killed in the middle of a call.',
    'It is cancelled in every way there is.',
    'A stop is under way.',
    'From then on it never changes.',
    'They run one after the other.',
    'They run side by side.',
    'It is fast, however many there are.',
    'The session is over for good.',
    'It survives the death of a process.',
    'The agents of others fail.',
    'The list is no part of it.',
    'It speaks HTTP.',
    'Keys are out of reach.',
    'The message is refused.',
    'A line that is no message is skipped.',
    'A hash that is none fails.',
    'The limit is said.',
    'The key is given back.',
    'It stops when told.',
  ];
  expect(sentences.flatMap(find)).toHaveLength(sentences.length);
  expect(sentences).toHaveLength(Object.keys(words).length);
});

test('a phrase is found across a line break and in any case', () => {
  expect(find('What became\nof it?')).toEqual(["a.md:1: 'What became of'"]);
});

test('longer words are not taken for a phrase', () => {
  expect(find('We recommend to amend it; besides, Ctrl-C goes one level further.')).toEqual([]);
});

test('code, transcripts and addresses may use the words', () => {
  expect(
    find('`anew` and [this](a.md#what-became-of-it)\n\n```ts\n// nobody\n```\n\n<pre>\nat once\n</pre>\n'),
  ).toEqual([]);
});

test('the tagline is allowed, and nothing else like it', () => {
  expect(find('AI agents that stop when told')).toEqual([]);
  expect(find('Agents that stop when told')).toEqual(["a.md:1: 'stop when told'"]);
});

test('a line after code is still counted from the beginning', () => {
  expect(find('```\nat once\n```\nat once\n')).toEqual(["a.md:4: 'at once'"]);
});

test.each([
  ['an error', 'a.ts', 'f();\nthrow new StoreError(`it went on`, { cause });'],
  ['an error that a name holds', 'a.ts', "\nthrow new UsageError(isBad ? 'it went on' : 'no');"],
  ['the help of a command', 'a.ts', '\nconst help = `whoa go\n\nThe run went on.`;'],
  ['its summary', 'a.ts', "\nconst table = { go: { summary: 'it went on' } };"],
  ['the title of a test', 'a.test.ts', "\ntest('the run went on', () => {});"],
  ['the title of many', 'a.test.tsx', "\ntest.each([1])('%s went on', () => {});"],
])('phrases are found in %s', (_where, file, source) => {
  expect(findUnplainInCode(file, source, words)).toEqual([`${file}:2: 'went on'; write: continues; keeps running`]);
});

test('comments, other strings and what tests expect are not checked', () => {
  const source = "// It went on.\nlog('it went on');\ntest('it runs', () => expect(text).toBe('it went on'));";
  expect(findUnplainInCode('a.ts', source, words)).toEqual([]);
  expect(findUnplainInCode('a.test.ts', source, words)).toEqual([]);
});

test.each(['/** It goes on. */', ' * It goes on.', '  // It goes on.', '-- It goes on.'])(
  'a comment is read, and the code around it is not: %s',
  (comment) => {
    const found = findUnplainInComments('a.ts', `const a = 'goes on';\n${comment}\ngoesOn();`, words);
    expect(found).toEqual(["a.ts:2: 'goes on'; write: continues; keeps running"]);
  },
);
