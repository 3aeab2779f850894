import { z } from 'zod';

/** The input of a tool. An unknown field is rejected with the fields there are: a model may know the tool by other names. */
export function strictInput<Shape extends z.ZodRawShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  const fields = Object.keys(shape).join(', ') || 'none';
  return z.strictObject(shape, {
    error: ({ code, keys }) =>
      code === 'unrecognized_keys' ? `unknown fields: ${keys!.join(', ')}; the fields are ${fields}` : undefined,
  });
}
