import { expect, test } from 'vitest';
import { RULES } from './library.ts';
import { OPERATIONS } from './operations.ts';

const FUNCTION = /^((?:-- .*\n)*)function OPERATIONS\.(\w+)\(\w*\)\n(.*\n.*)/gm;
const UNPACKED = /^ {2}local ([\w,\s]+?) = unpack\(args, 5, (\d+)\)/;
const ONE = /^ {2}local (\w+) = (?:tonumber\()?args\[5\]/;

const functions = [...RULES.matchAll(FUNCTION)].map(([, comment, name, body]) => ({
  comment,
  name: name!,
  body: body!,
}));

test('every operation is a Lua function with a comment, and unpacks its arguments in the order of their names', () => {
  const found = functions.map(({ name, body }): [string, string] => {
    const [, names = ONE.exec(body)?.[1] ?? '', last] = UNPACKED.exec(body) ?? [];
    const list = names.split(/[,\s]+/).filter(Boolean);
    if (last !== undefined) expect(Number(last), name).toBe(4 + list.length);
    return [name, list.join(' ')];
  });
  const wanted = Object.entries(OPERATIONS).map(([name, { takes }]) => [name, takes]);
  expect(Object.fromEntries(found)).toEqual(Object.fromEntries(wanted));
  expect(found).toHaveLength(wanted.length);
  expect(
    functions.filter(({ comment }) => !/Returns|Writes|Lists|Counts/.test(comment!)).map(({ name }) => name),
  ).toEqual([]);
});

test('every call begins with what is stored: no file keeps its own variable', () => {
  const state = RULES.split('\n').filter(
    (line) => /^local [\w, ]+ = (?!function)/.test(line) && !/^local [A-Z_]+ = /.test(line),
  );
  expect(state).toEqual([]);
});

test('operations differ in more than the case of a letter, which Redis does not see in names of functions', () => {
  const names = Object.keys(OPERATIONS).map((name) => name.toLowerCase());
  expect(new Set(names).size).toBe(names.length);
});
