import { expect, test } from 'vitest';
import { explain, textOf } from './result.ts';

test('the text of content is what it says, with its images named', () => {
  expect(textOf('plain')).toBe('plain');
  const image = { type: 'image', mediaType: 'image/png', data: 'AAAA' } as const;
  expect(textOf([{ type: 'text', text: 'a' }, image, { type: 'text', text: 'b' }])).toBe('a[image image/png]b');
});

const reason = { kind: 'user', at: 0 } as const;

test('a sentence that a call reported ends once', () => {
  const said = (error: string): string => explain('interrupted', reason, { effects: 'read', error });
  expect(said('no v1.2 here')).toBe('Interrupted (user) before it finished, and reported: no v1.2 here.');
  expect(said('Really?')).toBe('Interrupted (user) before it finished, and reported: Really?');
});

test('the worst is assumed of a call of which nothing is known', () => {
  expect(explain('interrupted', reason)).toBe(
    'Interrupted (user) before it finished. It may have taken effect in part.',
  );
  expect(explain('not-started', reason)).toBe('Not started: cancelled (user). It had no effect.');
  expect(explain('unknown', reason)).toBe(
    'Outcome unknown: it was still running when the wait for it ended (user). It may have taken effect.',
  );
});
