import type { InputSchema } from '@whoa/core/embed';

/** The JSON types that the shell tools take. */
interface Field {
  readonly type: 'string' | 'number' | 'boolean';
  readonly description: string;
  readonly isOptional?: boolean;
  readonly minimum?: number;
  readonly maximum?: number;
}

/** A schema for a flat object, so that these tools need no schema library. */
export function objectSchema<Output>(fields: Readonly<Record<string, Field>>): InputSchema<Output> {
  return {
    '~standard': {
      version: 1,
      vendor: 'whoa',
      validate(value) {
        if (typeof value !== 'object' || value === null) return { issues: [{ message: 'expected an object' }] };
        const given = value as Record<string, unknown>;
        const issues = Object.entries(fields).flatMap(([name, field]) => {
          const message = problemWith(given[name], field);
          return message === undefined ? [] : [{ message, path: [name] }];
        });
        return issues.length > 0 ? { issues } : { value: given as Output };
      },
      jsonSchema: { input: () => jsonSchema(fields) },
    },
  };
}

function problemWith(
  value: unknown,
  { type, isOptional, minimum = -Infinity, maximum = Infinity }: Field,
): string | undefined {
  if (value === undefined) return isOptional ? undefined : `expected a ${type}`;
  if (typeof value !== type) return `expected a ${type}`;
  if (typeof value === 'number' && !(value >= minimum && value <= maximum)) return `expected ${minimum} to ${maximum}`;
  return undefined;
}

function jsonSchema(fields: Readonly<Record<string, Field>>): Record<string, unknown> {
  const properties = Object.entries(fields).map(([name, { isOptional, ...shown }]) => [name, shown] as const);
  const required = Object.entries(fields).flatMap(([name, { isOptional }]) => (isOptional ? [] : [name]));
  return { type: 'object', properties: Object.fromEntries(properties), required, additionalProperties: false };
}
