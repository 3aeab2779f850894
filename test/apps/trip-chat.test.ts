// Counts the changes between the two trip chats.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { countChanges, readFiles, sum } from './changed-lines.ts';

const APP = join(import.meta.dirname, '../../examples/apps/trip-chat');
const MAX_ADDED = 55;
/** The streams that the AI SDK's page has an application keep. */
const GONE = 'streams.ts';

test('the conversion removes more than twice what it adds, and the README says where', () => {
  const before = [...readFiles(APP, 'before').keys()].toSorted();
  expect([...readFiles(APP, 'after').keys(), GONE].toSorted()).toEqual(before);
  const counted = countChanges(APP);
  const [added, removed] = [sum(counted, 'added'), sum(counted, 'removed')];
  expect(added).toBeLessThanOrEqual(MAX_ADDED);
  expect(removed).toBeGreaterThan(2 * added);
  const readme = readFileSync(join(APP, 'README.md'), 'utf8');
  expect(readme).toContain(`**${added} lines added**, ${removed} removed`);
  for (const { file, ...one } of counted)
    expect(readme).toContain(`| \`${file.replace(/^(after|before)\//, '')}\` | ${one.added} | ${one.removed} |`);
});

test('the application before is a small one', () => {
  const files = [...readFiles(APP, 'before').values()];
  const lines = files.map((file) => readFileSync(join(APP, file), 'utf8').split('\n').length - 1);
  expect(lines.reduce((total, count) => total + count, 0)).toBeLessThanOrEqual(250);
});
