// The page of results says what was saved, and nothing was left out of it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKS } from '@whoa/check';
import { expect, test } from 'vitest';
import { toPage } from './page.ts';
import { readResults } from './results.ts';
import { SUBJECTS } from './subjects/subjects.ts';

test('the page of results is made from the saved results', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/check-results.md'), 'utf8');
  expect(page).toBe(toPage(readResults()));
});

test('every result is of a subject and of checks that are there, in its versions', () => {
  for (const { name, versions, outcomes } of readResults()) {
    const subject = SUBJECTS.find((one) => one.name === name);
    expect(versions).toEqual(subject?.packages);
    expect(CHECKS.map(({ id }) => id)).toEqual(expect.arrayContaining(outcomes.map(({ id }) => id)));
  }
});
