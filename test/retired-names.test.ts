import { expect, test } from 'vitest';
import { findRetired, readRetiredNames } from '../scripts/retired-names.ts';

const names = readRetiredNames();
const find = (path: string, text: string): string[] => findRetired(path, text, names);

test('a retired identifier is found, in code and in the code of a page', () => {
  const code = 'export const stop = (how: StopHow) => token.cancel({}, { how });';
  const wanted = ["a.ts: 'how' is now 'mode'", "a.ts: 'StopHow' is now 'StopMode'"];
  expect(find('a.ts', code)).toEqual(wanted);
  expect(find('a.md', `# Stop\n\n\`\`\`ts run\n${code}\n\`\`\`\n`)).toEqual(
    wanted.map((one) => one.replace('a.ts', 'a.md')),
  );
});

test('a retired identifier is found in Lua and in SQL, but not in their comments and texts', () => {
  expect(find('a.lua', "local begun = call('begun') -- begun")).toEqual(["a.lua: 'begun' is now 'started'"]);
  expect(find('a.lua', '-- begun\nreturn \'begun\', "begun"')).toEqual([]);
  expect(find('a.sql', 'SELECT begun FROM t -- begun')).toEqual(["a.sql: 'begun' is now 'started'"]);
});

test('a word that is retired in one folder is found there only', () => {
  const path = 'packages/tasks/src/a.ts';
  expect(find(path, 'const lane = 1;')).toEqual([`${path}: 'lane' is now 'readyQueue'`]);
  expect(find('packages/console/src/a.ts', 'const lane = 1;')).toEqual([]);
});

test('a limit that ends in max is found', () => {
  expect(find('a.mjs', 'const TURNS_MAX = 3; f({ turnsMax: TURNS_MAX })')).toEqual([
    "a.mjs: 'TURNS_MAX' should begin with 'MAX_'",
    "a.mjs: 'turnsMax' should begin with 'max'",
  ]);
});

test('a retired name of a file or folder is found', () => {
  expect(find('test/zoo/beast.pl', '')).toEqual([
    "test/zoo/beast.pl: 'zoo' is now 'process-escapes'",
    "test/zoo/beast.pl: 'beast' is now 'escape'",
  ]);
});

test('prose, comments, texts and fields of protocols may use the words', () => {
  expect(find('a.md', 'This is how a scene ends: `how`.')).toEqual([]);
  expect(find('a.ts', "// how\n/** A place\n in a scene. */\nconst a = wire['how'] + 'the scene' + `place`;")).toEqual(
    [],
  );
});

test('names that objects have anyway are not taken for retired ones', () => {
  expect(find('constructor/toString.ts', 'class A { constructor() { this.toString(); } }')).toEqual([]);
});
