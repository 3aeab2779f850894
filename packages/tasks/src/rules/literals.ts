/** Converts plain data to the text of a Lua table. */
export function toLua(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number' || typeof value === 'boolean') return `${value}`;
  if (Array.isArray(value)) return `{ ${value.map(toLua).join(', ')} }`;
  const fields = Object.entries(value as object).map(([name, field]) => `[${JSON.stringify(name)}] = ${toLua(field)}`);
  return `{ ${fields.join(', ')} }`;
}

/** Converts text to an SQL literal. */
export function toSqlText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Converts a table with two keys to an SQL expression that looks up a cell. */
export function toSqlTable(
  table: Readonly<Record<string, Readonly<Record<string, string>>>>,
  { row, column }: { readonly row: string; readonly column: string },
): string {
  const rows = Object.entries(table).map(([name, cells]) => {
    const columns = Object.entries(cells).map(([cell, to]) => `WHEN ${toSqlText(cell)} THEN ${toSqlText(to)}`);
    return `WHEN ${toSqlText(name)} THEN CASE ${column} ${columns.join(' ')} END`;
  });
  return `CASE ${row} ${rows.join(' ')} END`;
}
