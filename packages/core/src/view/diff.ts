/** One line of a diff, without its sign. */
interface DiffLine {
  readonly kind: 'context' | 'add' | 'remove';
  readonly text: string;
  /** Its line number in the old file, unless it was added. */
  readonly oldLine?: number;
  /** Its line number in the new file, unless it was removed. */
  readonly newLine?: number;
}

/** A changed part of a file, with the lines around it. */
export interface DiffHunk {
  readonly oldStart: number;
  readonly newStart: number;
  readonly lines: readonly DiffLine[];
}

/**
 * Parses a unified diff of one file. Headers and everything else that belongs to no hunk are skipped.
 *
 * @returns The hunks; none for text that is not a diff.
 */
export function parseDiff(diff: string): DiffHunk[] {
  const hunks: { oldStart: number; newStart: number; lines: DiffLine[] }[] = [];
  let oldLine = 0;
  let newLine = 0;
  for (const line of diff.replace(/\n$/, '').split('\n')) {
    const header = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (header !== null) {
      oldLine = Number(header[1]);
      newLine = Number(header[2]);
      hunks.push({ oldStart: oldLine, newStart: newLine, lines: [] });
      continue;
    }
    const lines = hunks.at(-1)?.lines;
    const text = line.slice(1);
    if (lines === undefined) continue;
    if (line.startsWith('+')) lines.push({ kind: 'add', text, newLine: newLine++ });
    else if (line.startsWith('-')) lines.push({ kind: 'remove', text, oldLine: oldLine++ });
    else if (line.startsWith(' ')) lines.push({ kind: 'context', text, oldLine: oldLine++, newLine: newLine++ });
  }
  return hunks;
}
