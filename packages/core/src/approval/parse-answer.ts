import type { Json } from '../tool/result.ts';

/** Reads an answer as a user has typed it. @returns JSON, or the text if its schema asks for a text or it is not JSON. */
export function parseAnswer(text: string, schema: { readonly [key: string]: Json | undefined } = {}): Json {
  if ([schema['type']].flat().includes('string')) return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** Describes a JSON Schema for a user who types JSON. @returns Words, such as `{ "date": date, "note"?: string }`. */
export function describeSchema(schema: Json, depth: number = 4): string {
  const { enum: choices, type, format = type, items, properties, required } = Object(schema) as { [key: string]: Json };
  if (Array.isArray(choices)) return choices.map((choice) => JSON.stringify(choice)).join(' | ');
  if (depth > 0 && items) return `[${describeSchema(items, depth - 1)}, …]`;
  if (depth > 0 && properties) {
    const fields = Object.entries(properties).map(([name, one]: [string, Json]) => {
      const key = JSON.stringify(name) + ([required].flat().includes(name) ? '' : '?');
      return `${key}: ${describeSchema(one, depth - 1)}`;
    });
    return `{ ${fields.join(', ')} }`;
  }
  return typeof format === 'string' && /^[\w-]+$/.test(format) ? format : JSON.stringify(schema);
}
