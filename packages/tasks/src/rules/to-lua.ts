/** Converts plain data to the text of a Lua table. */
export function toLua(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number' || typeof value === 'boolean') return `${value}`;
  if (Array.isArray(value)) return `{ ${value.map(toLua).join(', ')} }`;
  const fields = Object.entries(value as object).map(([name, field]) => `[${JSON.stringify(name)}] = ${toLua(field)}`);
  return `{ ${fields.join(', ')} }`;
}
