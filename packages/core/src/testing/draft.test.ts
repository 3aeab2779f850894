import { expect, test } from 'vitest';
import { isHeldLater } from './draft.ts';

const entry = (position: number, event: object) => ({ position, epoch: 1, event });
const rest = [
  entry(5, { type: 'turn-end', message: { content: [{ type: 'text', text: 'I look. ' }] } }),
  entry(6, { type: 'call-event', callId: 'n', event: { type: 'call-end', result: { callId: 'u' } } }),
  entry(7, { type: 'history' }),
  entry(8, { type: 'call-update', callId: 'v' }),
];

test.each([
  { type: 'text', text: 'I ' },
  { type: 'thinking', text: 'hm' },
  { type: 'call-event', callId: 'n', event: { type: 'call-update', callId: 'u' } },
  { type: 'call-update', callId: 'v' },
  { type: 'history' },
])('$type may be removed when a later entry contains it', (event) => {
  expect(isHeldLater(entry(1, event), rest)).toBe(true);
  expect(isHeldLater(entry(9, event), rest)).toBe(false);
});

test.each([
  { type: 'text', text: 'something else' },
  { type: 'call-update', callId: 'w' },
  { type: 'call-end', result: { callId: 'u' } },
  { type: 'turn-end', message: { content: [] } },
])('$type may not go when nothing holds it', (event) => {
  expect(isHeldLater(entry(1, event), rest)).toBe(false);
});
