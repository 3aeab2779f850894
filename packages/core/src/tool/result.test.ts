import { expect, test } from 'vitest';
import { describeStoppedCall, toText } from './result.ts';

test('the text of content names its images', () => {
  expect(toText('plain')).toBe('plain');
  const image = { type: 'image', mediaType: 'image/png', data: 'AAAA' } as const;
  expect(toText([{ type: 'text', text: 'a' }, image, { type: 'text', text: 'b' }])).toBe('a[image image/png]b');
});

const reason = { kind: 'user', at: 0 } as const;

test('a sentence that a call reported ends once', () => {
  const said = (error: string): string => describeStoppedCall('interrupted', reason, { effects: 'read', error });
  expect(said('no v1.2 here')).toBe('Interrupted (user) before it finished, and reported: no v1.2 here.');
  expect(said('Really?')).toBe('Interrupted (user) before it finished, and reported: Really?');
});

test('the worst is assumed of a call of which nothing is known', () => {
  expect(describeStoppedCall('interrupted', reason)).toBe(
    'Interrupted (user) before it finished. It may have taken effect in part.',
  );
  expect(describeStoppedCall('not-started', reason)).toBe('Not started: cancelled (user). It had no effect.');
  expect(describeStoppedCall('unknown', reason)).toBe(
    'Outcome unknown: it was still running when the wait for it ended (user). It may have taken effect.',
  );
});
