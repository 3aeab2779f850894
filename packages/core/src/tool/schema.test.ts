import type { StandardSchemaV1 } from '@standard-schema/spec';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { type InputSchema, InvalidInputError, parseInput } from './schema.ts';

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

test('a schema that answers at once is not waited for; one that has to look somewhere is', async () => {
  expect(parseInput(z.object({ n: z.number() }), { n: 1 })).toEqual({ n: 1 });
  const slow = z.string().refine((text) => Promise.resolve(text !== 'taken'), 'is taken');
  const free = parseInput(slow, 'free');
  expect(free).toBeInstanceOf(Promise);
  expect(await free).toBe('free');
  await expect(parse(slow, 'taken')).rejects.toThrow(new InvalidInputError('is taken'));
});
