/** Rows under headings, each column as wide as it needs; the last one gets what is left. */
export function formatTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  width: number,
): string[] {
  const all = [headings, ...rows];
  const widths = headings.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const taken = widths.slice(0, -1).reduce((sum, one) => sum + one + 2, 0);
  const room = Math.max(20, width - taken);
  return all.map((row) =>
    row
      .map((cell, column) => (column === headings.length - 1 ? clip(cell, room) : cell.padEnd(widths[column]!)))
      .join('  ')
      .trimEnd(),
  );
}

function clip(text: string, room: number): string {
  return text.length <= room ? text : `${text.slice(0, room - 1)}…`;
}
