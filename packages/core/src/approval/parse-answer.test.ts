import { expect, test } from 'vitest';
import { describeSchema, parseAnswer } from './parse-answer.ts';

test.each([
  ['Oslo', { type: 'string' }, 'Oslo'],
  ['42', { type: 'string' }, '42'],
  ['42', { type: ['string', 'null'] }, '42'],
  ['42', { type: 'number' }, 42],
  ['{"day":3}', { type: 'object' }, { day: 3 }],
  ['{"day"', { type: 'object' }, '{"day"'],
  ['Oslo', undefined, 'Oslo'],
] as const)('typed text %s is parsed by its schema %j', (text, schema, answer) => {
  expect(parseAnswer(text, schema)).toEqual(answer);
});

const date = { type: 'string', format: 'date', pattern: String.raw`^\d{4}-\d\d-\d\d$` };

test.each([
  [{ type: 'integer' }, 'integer'],
  [{ enum: ['Oak', 1, null] }, '"Oak" | 1 | null'],
  [
    { $schema: 'x', type: 'object', properties: { date, note: { type: 'string' } }, required: ['date'] },
    '{ "date": date, "note"?: string }',
  ],
  [
    { type: 'array', items: { type: 'object', properties: { room: { enum: ['Oak', 'Elm'] } } } },
    '[{ "room"?: "Oak" | "Elm" }, …]',
  ],
  [{ const: 3 }, '{"const":3}'],
  [{ type: 'a\u001b[2J' }, '{"type":"a\\u001b[2J"}'],
  [{ properties: null, required: 7 }, '{"properties":null,"required":7}'],
])('the answers that %j allows are described in words', (schema, words) => {
  expect(describeSchema(schema)).toBe(words);
});
