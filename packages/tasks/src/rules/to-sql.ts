/** A text as an SQL literal. */
export function toSqlText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A table of two keys as an SQL expression that looks a cell up. */
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
