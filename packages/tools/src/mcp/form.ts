import { z } from 'zod';

const MAX_FIELDS = 20;
const MAX_TEXT_CHARS = 500;

const text = z.string().max(MAX_TEXT_CHARS);
const plainValue = z.union([text, z.number(), z.boolean(), z.array(text).max(MAX_FIELDS)]);
const field = z.looseObject({ title: text.optional(), description: text.optional(), default: plainValue.optional() });
const form = z.looseObject({
  properties: z.record(text, field).default({}),
  required: z.array(z.string()).default([]),
});

/** A form that a yes sends as it is. */
export interface PlainForm {
  /** Every field, a line each. Empty if there are none. */
  readonly fields: string;
  readonly content: Readonly<Record<string, unknown>>;
}

/** Reads a form that needs no more than yes or no: each field has a default, or may stay empty. */
export function readPlainForm(schema: unknown): PlainForm | undefined {
  const { data } = form.safeParse(schema ?? {});
  if (data === undefined) return undefined;
  const fields = Object.entries(data.properties);
  const content = Object.fromEntries(
    fields.flatMap(([name, { default: value }]) => (value === undefined ? [] : [[name, value]])),
  );
  const isComplete = data.required.every((name) => Object.hasOwn(content, name));
  if (fields.length > MAX_FIELDS || !isComplete) return undefined;
  const lines = fields.map(([name, { title, description, default: value }]) => {
    const label = [JSON.stringify(name), title, description].filter((part) => part !== undefined).join(', ');
    return `- ${label}: ${value === undefined ? 'empty' : JSON.stringify(value)}`;
  });
  return { fields: lines.join('\n'), content };
}
