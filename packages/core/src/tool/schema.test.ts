import type { StandardSchemaV1 } from '@standard-schema/spec';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { type InputSchema, InvalidInputError, parseInput } from './schema.ts';

test('any Standard Schema is an input schema, and the type of its output is known', async () => {
  const anyones = (schema: StandardSchemaV1<unknown, { at: string }>): InputSchema<{ at: string }> => schema;
  const schema = anyones(z.object({ at: z.string() }));
  expect((await parseInput(schema, { at: 'noon', more: 1 })).at).toBe('noon');
});

test('defaults and transforms of the schema are applied', async () => {
  expect(await parseInput(z.object({ n: z.coerce.number().default(3) }), {})).toEqual({ n: 3 });
});

test('every issue is named with its path', async () => {
  const schema = z.object({ deep: z.object({ list: z.array(z.number()) }), name: z.string() });
  const error = await parseInput(schema, { deep: { list: [1, 'x'] } }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(InvalidInputError);
  expect((error as Error).message).toMatch(/deep\.list\.1: .*; name: /);
  await expect(parseInput(z.string(), 1)).rejects.toThrow(/expected string/);
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
  await expect(parseInput(schema, 1)).rejects.toThrow('a.0: no; never');
});
