import { expect, test } from 'vitest';
import { objectSchema } from './input.ts';

const schema = objectSchema<{ command: string; seconds?: number }>({
  command: { type: 'string', description: 'what to run' },
  seconds: { type: 'number', description: 'how long', minimum: 1, maximum: 10, isOptional: true },
})['~standard'];

test('what fits is taken as it is', () => {
  expect(schema.validate({ command: 'ls', seconds: 2 })).toEqual({ value: { command: 'ls', seconds: 2 } });
});

test('what does not fit is named field by field', () => {
  expect(schema.validate({ seconds: 11 })).toEqual({
    issues: [
      { message: 'expected a string', path: ['command'] },
      { message: 'expected 1 to 10', path: ['seconds'] },
    ],
  });
  expect(schema.validate('ls')).toEqual({ issues: [{ message: 'expected an object' }] });
});

test('a model is shown the fields as JSON Schema', () => {
  expect(schema.jsonSchema?.input({ target: 'draft-07' })).toEqual({
    type: 'object',
    properties: {
      command: { type: 'string', description: 'what to run' },
      seconds: { type: 'number', description: 'how long', minimum: 1, maximum: 10 },
    },
    required: ['command'],
    additionalProperties: false,
  });
});
