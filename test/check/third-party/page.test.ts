// The page of results shows all saved results.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKS } from '@whoa/check';
import { expect, test } from 'vitest';
import { toPage } from './page.ts';
import { readResults, savedOutcomes } from './results.ts';
import { SUBJECTS } from './subjects/subjects.ts';

test('the page of results is made from the saved results', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/evidence/check-results.md'), 'utf8');
  expect(page).toBe(toPage(readResults()));
});

test('failures of the program around a subject do not count against it', () => {
  const names = ['ai-sdk-chat', 'a2a-sdk'];
  const results = readResults().filter(({ name }) => names.includes(name));
  expect(JSON.stringify(results)).toContain('a child that had left the process group was still running');
  expect(toPage(results)).not.toContain('left the process group was still running');
  expect(toPage(results)).toContain(
    '- `left-detached`, `orphans-sigterm`, `orphans-sigkill`: up to the program around it and its tool, which here are ours',
  );
});

test('a campaign runs everything again, unless it is resumed with the same versions', () => {
  const [saved] = readResults();
  const { versions } = saved!;
  expect(savedOutcomes(saved, { versions, resume: false })).toEqual([]);
  expect(savedOutcomes(saved, { versions, resume: true })).toBe(saved!.outcomes);
  expect(savedOutcomes(saved, { versions: { ...versions, ai: '0.0.0' }, resume: true })).toEqual([]);
  expect(savedOutcomes(undefined, { versions, resume: true })).toEqual([]);
});

test('every result is of a subject and of checks that are there, in its versions', () => {
  for (const { name, versions, outcomes } of readResults()) {
    const subject = SUBJECTS.find((one) => one.name === name);
    expect(versions).toEqual(subject?.packages);
    expect(CHECKS.map(({ id }) => id)).toEqual(expect.arrayContaining(outcomes.map(({ id }) => id)));
  }
});
