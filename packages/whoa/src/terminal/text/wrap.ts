const MIN_WIDTH = 20;

/**
 * Wraps a line, so that the terminal never wraps it itself: text from the model must not appear at the start of a line.
 * `used` columns of the first line are taken.
 */
export function wrapLine(line: string, width: number, used = 0): string[] {
  const limit = Math.max(MIN_WIDTH, width);
  const pieces: string[] = [];
  let piece = '';
  let taken = used;
  for (const character of line.replaceAll('\t', '    ')) {
    const columns = measureColumns(character);
    if (taken + columns > limit) {
      pieces.push(piece);
      [piece, taken] = ['', 0];
    }
    piece += character;
    taken += columns;
  }
  return [...pieces, piece];
}

/** The columns that a text takes at most: some characters take two, and assuming two for others only wraps earlier. */
export function measureColumns(text: string): number {
  let columns = 0;
  for (const character of text) columns += character.codePointAt(0)! < 0x300 ? 1 : 2;
  return columns;
}
