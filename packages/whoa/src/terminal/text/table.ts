export interface TableOptions {
  readonly width: number;
  /** Indexes of the columns to drop when the table is too wide, least important first. */
  readonly dropOrder?: readonly number[];
}

/** The minimum width of the last column. */
const MIN_LAST = 16;

/** Formats rows under headings. Columns are as wide as their content; the last one gets the remaining width. */
export function formatTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  { width, dropOrder = [] }: TableOptions,
): string[] {
  const all = [headings, ...rows];
  const widths = headings.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const last = headings.length - 1;
  let columns = headings.map((_, column) => column).slice(0, -1);
  const spare = (): number => width - columns.reduce((sum, column) => sum + widths[column]! + 2, 0);
  for (const column of dropOrder) if (spare() < MIN_LAST) columns = columns.filter((one) => one !== column);
  const lastWidth = Math.max(MIN_LAST, spare());
  return all.map((row) =>
    [...columns.map((column) => row[column]!.padEnd(widths[column]!)), clip(row[last]!, lastWidth)]
      .join('  ')
      .trimEnd(),
  );
}

function clip(text: string, spare: number): string {
  return text.length <= spare ? text : `${text.slice(0, spare - 1)}…`;
}
