/** Selects the files of a search. */
export interface GlobFilter {
  /** Arguments for ripgrep. Unlike `--glob`, they never include files that `.gitignore` excludes. */
  readonly args: readonly string[];
  /** Checks a found path, relative to the searched folder. */
  accepts(path: string): boolean;
}

/**
 * Reads a glob as `.gitignore` does: without a slash it is about names in any folder, with one about the path from the
 * folder that is searched; `!` leaves files out.
 */
export function createGlobFilter(glob: string | undefined): GlobFilter {
  if (glob === undefined) return { args: [], accepts: () => true };
  // An exclusion cannot include ignored files.
  if (glob.startsWith('!')) return { args: [`--glob=${glob}`], accepts: () => true };
  const byName = !glob.replace(/\/$/, '').includes('/');
  const name = findLastName(glob);
  // A type matches the name only and applies after the ignore files, so it narrows the search and overrides nothing.
  const args = name === undefined ? [] : [`--type-add=whoa:${name}`, '--type=whoa'];
  if (byName && name !== undefined) return { args, accepts: () => true };
  const pattern = new RegExp(`^${byName ? '(?:.*/)?' : ''}${regExpFor(glob.replace(/^\//, ''))}$`, 's');
  return { args, accepts: (path) => pattern.test(path) };
}

/** The part of a glob that matches the file name, if it can be separated. */
function findLastName(glob: string): string | undefined {
  const name = glob.slice(glob.lastIndexOf('/') + 1);
  const isWhole = count(name, '{') === count(name, '}') && count(name, '[') === count(name, ']');
  // In a type definition a colon would include other types.
  return name === '' || name === '**' || !isWhole || name.includes(':') ? undefined : name;
}

function count(text: string, character: string): number {
  return text.split(character).length - 1;
}

const PIECES = /\*\*\/|\/\*\*$|\*\*|\*|\?|\[!?\]?[^\]]*\]|\{|\}|,|\\.|[\s\S]/gu;

function regExpFor(glob: string): string {
  let depth = 0;
  const pieces = glob.replace(/\/$/, '/**').match(PIECES) ?? [];
  const written = pieces.map((piece) => {
    if (piece === '**/') return '(?:.*/)?';
    if (piece === '/**') return '/.+';
    if (piece === '**') return '.*';
    if (piece === '*') return '[^/]*';
    if (piece === '?') return '[^/]';
    if (piece.startsWith('[') && piece.length > 2) return classFor(piece);
    if (piece === '{') return ++depth && '(?:';
    if (piece === '}' && depth > 0) return --depth >= 0 ? ')' : '';
    if (piece === ',' && depth > 0) return '|';
    return escapeForRegExp(piece.length > 1 && piece.startsWith('\\') ? piece.slice(1) : piece);
  });
  return written.join('') + ')'.repeat(depth);
}

function classFor(piece: string): string {
  const isNot = piece.startsWith('[!');
  const characters = piece.slice(isNot ? 2 : 1, -1).replace(/[\\\]^[]/g, '\\$&');
  return `(?!/)[${isNot ? '^' : ''}${characters}]`;
}

function escapeForRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
}
