const MIN_WIDTH = 20;

/** Wraps a line, so that the terminal never wraps it itself: text from the model must not appear at the start of a line. */
export function wrapLine(line: string, width: number): string[] {
  const limit = Math.max(MIN_WIDTH, width);
  const pieces: string[] = [];
  let piece = '';
  let used = 0;
  for (const character of line.replaceAll('\t', '    ')) {
    // Some characters take two columns. Assuming two for others only wraps earlier.
    const columns = character.codePointAt(0)! < 0x300 ? 1 : 2;
    if (used + columns > limit) {
      pieces.push(piece);
      [piece, used] = ['', 0];
    }
    piece += character;
    used += columns;
  }
  return [...pieces, piece];
}
