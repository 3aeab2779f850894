import type { StandardSchemaV1 } from '@standard-schema/spec';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { type InputSchema, InvalidInputError, inputSchema, parseInput } from './schema.ts';

const parse = async <Output>(schema: InputSchema<Output>, value: unknown): Promise<Output> => parseInput(schema, value);

test('any Standard Schema is an input schema, and the type of its output is known', async () => {
  const anyones = (schema: StandardSchemaV1<unknown, { at: string }>): InputSchema<{ at: string }> => schema;
  const schema = anyones(z.object({ at: z.string() }));
  expect((await parse(schema, { at: 'noon', more: 1 })).at).toBe('noon');
});

test('defaults and transforms of the schema are applied', async () => {
  expect(await parse(z.object({ n: z.coerce.number().default(3) }), {})).toEqual({ n: 3 });
});

test('every issue is named with its path', async () => {
  const schema = z.object({ deep: z.object({ list: z.array(z.number()) }), name: z.string() });
  const error = await parse(schema, { deep: { list: [1, 'x'] } }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(InvalidInputError);
  expect((error as Error).message).toMatch(/deep\.list\.1: .*; name: /);
  await expect(parse(z.string(), 1)).rejects.toThrow(/expected string/);
});

test('paths may be written as objects, as the standard allows', async () => {
  const schema: InputSchema = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: () => ({
        issues: [
          { message: 'no', path: [{ key: 'a' }, 0] },
          { message: 'never', path: [] },
        ],
      }),
    },
  };
  await expect(parse(schema, 1)).rejects.toThrow('a.0: no; never');
});

test('a synchronous schema is not awaited; an asynchronous one is', async () => {
  expect(parseInput(z.object({ n: z.number() }), { n: 1 })).toEqual({ n: 1 });
  const slow = z.string().refine((text) => Promise.resolve(text !== 'taken'), 'is taken');
  const free = parseInput(slow, 'free');
  expect(free).toBeInstanceOf(Promise);
  expect(await free).toBe('free');
  await expect(parse(slow, 'taken')).rejects.toThrow(new InvalidInputError('is taken'));
});

test.each<[string, unknown, string]>([
  ['no list', 7, 'the schema refused it and did not say why'],
  ['nothing', [null], 'the schema refused it and did not say why'],
  ['no text', [{ message: 7 }], 'the schema refused it and did not say why'],
  ['a path that cannot be read', [{ message: 'bad', path: [Object.create(null)] }], 'undefined: bad'],
  ['a path that throws', [{ message: 'bad', path: 7 }], 'the schema refused it and did not say why'],
  [
    'at the end of a long path',
    [{ message: 'bad', path: Array.from({ length: 200 }, () => 'x') }],
    `${Array.from({ length: 100 }, () => 'x').join('.')}: bad`,
  ],
  [
    'more than anyone reads',
    Array.from({ length: 200 }, () => ({ message: 'x' })),
    Array.from({ length: 100 }, () => 'x').join('; '),
  ],
])('issues that are %s are described as well as possible', async (_, issues, message) => {
  const schema = {
    '~standard': { version: 1, vendor: 'test', validate: () => ({ issues }) },
  } as unknown as InputSchema;
  await expect(parse(schema, {})).rejects.toThrow(new InvalidInputError(message));
});

test('an issue without a path is reported without one', async () => {
  const error = await parse(z.string(), 1).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: 'InvalidInputError', code: 'INVALID_INPUT' });
  expect((error as Error).message).toMatch(/^Invalid input/);
});

test('a schema may be an object or a function', () => {
  const schema = z.string();
  const callable = Object.assign(() => {}, { '~standard': schema['~standard'] });
  expect(inputSchema(schema, 'input')).toBe(schema);
  expect(inputSchema(callable, 'input')).toBe(callable);
});

test.each<[unknown, string]>([
  [{ $schema: 'https://json-schema.org/draft-07/schema' }, 'JSON Schema cannot check a value'],
  [{ type: 'object' }, 'JSON Schema cannot check a value'],
  [{ properties: {} }, 'JSON Schema cannot check a value'],
  [{ at: z.string(), from: 7, type: 1 }, 'these are the fields of a schema'],
  [{ from: 7 }, 'expected a Standard Schema'],
  [{ '~standard': { validate: 'no' } }, 'expected a Standard Schema'],
  [() => {}, 'expected a Standard Schema'],
  ['text', 'expected a Standard Schema'],
])('%o as a schema is rejected with what to do', (value, advice) => {
  expect(() => inputSchema(value, 'input')).toThrow(`input: ${advice}`);
});
