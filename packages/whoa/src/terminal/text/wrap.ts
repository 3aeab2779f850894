const MIN_WIDTH = 20;

/** A line in pieces that fit, so that the terminal never begins a line of its own that could pass for one of ours. */
export function wrapLine(line: string, width: number): string[] {
  const limit = Math.max(MIN_WIDTH, width);
  const pieces: string[] = [];
  let piece = '';
  let used = 0;
  for (const character of line.replaceAll('\t', '    ')) {
    // Some take two columns; taking more room than needed only wraps earlier.
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
