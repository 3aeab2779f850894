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
