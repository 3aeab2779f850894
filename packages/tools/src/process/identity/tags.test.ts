import { expect, test } from 'vitest';
import { createHostTag, readTags, tagArguments, tagEnvironment, tagKey } from './tags.ts';

const tag = { host: 2 ** 30 + 5, limits: true };

test('a command is named by its host and its number', () => {
  expect(tagKey(tag, 7)).toBe('1073741829.7');
  expect(tagKey(tag)).toBe('1073741829');
});

test('the tag is added to the given environment and replaces none of it', () => {
  expect(tagEnvironment({ PATH: '/bin' }, tag, 7)).toMatchObject({ PATH: '/bin', WHOA_CONTAINED_1073741829: '7' });
});

test('a host that is contained itself does not move the limit of the outer one', () => {
  expect(tagArguments(['true'], { tag: { ...tag, limits: false }, command: 7 })).toEqual(['true']);
});

test('two hosts have different tags, and an untagged process has none', () => {
  expect(createHostTag().host).not.toBe(createHostTag().host);
  expect(readTags(1)?.keys).toEqual([]);
  expect(readTags(2 ** 22 + 1)).toBeUndefined();
});
