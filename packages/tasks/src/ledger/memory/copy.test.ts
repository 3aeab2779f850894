import { expect, test } from 'vitest';
import { copyDeep } from './copy.ts';

test('a copy shares nothing with the original', () => {
  const original = { list: [{ deep: { value: 1 } }], text: 'a', none: null, absent: undefined };
  const copied = copyDeep(original);
  expect(copied).toStrictEqual(original);
  copied.list[0]!.deep.value = 2;
  copied.list.push({ deep: { value: 3 } });
  expect(original.list).toEqual([{ deep: { value: 1 } }]);
});

test('a field called __proto__ stays a field', () => {
  const copied = copyDeep(JSON.parse('{"a":{"__proto__":{"isAdmin":true}}}') as { a: { isAdmin?: boolean } });
  expect(copied.a.isAdmin).toBeUndefined();
  expect(JSON.stringify(copied)).toBe('{"a":{"__proto__":{"isAdmin":true}}}');
});

test('deep data and other objects are copied as well', () => {
  const deep = JSON.parse(`${'['.repeat(1_000)}${']'.repeat(1_000)}`) as unknown[];
  expect(JSON.stringify(copyDeep(deep))).toBe(JSON.stringify(deep));
  const map = new Map([['a', { b: 1 }]]);
  const copied = copyDeep({ map });
  expect(copied.map).toEqual(map);
  expect(copied.map.get('a')).not.toBe(map.get('a'));
});
