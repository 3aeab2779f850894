/** A command line, parsed as far as possible without a shell. */
export interface CommandLine {
  /** The words of each command, as far as they could be parsed. */
  readonly commands: readonly (readonly string[])[];
  /** Whether these are all commands: no expansion, redirection, assignment, grouping or keyword could run more. */
  readonly isCertain: boolean;
}

const SEPARATORS = /^(?:\|\||&&|\|&|;;|[;|&\n])/;
/** Characters that expand, redirect, group or comment. */
const UNCERTAIN = new Set(['$', '`', '(', ')', '{', '}', '<', '>', '#', '!']);
const ASSIGNMENT = /^[A-Za-z_]\w*(?:\[.*\])?\+?=/;
const KEYWORDS = new Set(
  'if then elif else fi for while until do done case esac select function time coproc eval exec source . alias'.split(
    ' ',
  ),
);

/**
 * Parses the commands of a command line. It understands words, quotes and command separators; everything else makes the
 * result uncertain.
 */
export function readCommandLine(text: string): CommandLine {
  const commands: string[][] = [];
  let words: string[] = [];
  let isCertain = true;
  let word: string | undefined;
  const endWord = (): void => {
    if (word !== undefined) words.push(word);
    word = undefined;
  };
  const endCommand = (): void => {
    endWord();
    if (words.length > 0) commands.push(words);
    words = [];
  };
  for (let at = 0; at < text.length; ) {
    const character = text[at]!;
    const separator = SEPARATORS.exec(text.slice(at, at + 2))?.[0];
    if (separator !== undefined) {
      endCommand();
      at += separator.length;
    } else if (character === ' ' || character === '\t') {
      endWord();
      at++;
    } else {
      const piece = readPiece(text, at);
      isCertain &&= piece.isCertain;
      word = (word ?? '') + piece.text;
      at = piece.end;
    }
  }
  endCommand();
  return { commands, isCertain: isCertain && commands.every(isPlainCommand) };
}

interface Piece {
  readonly text: string;
  readonly end: number;
  readonly isCertain: boolean;
}

/** One character of a word, or a quoted part of it. */
function readPiece(text: string, at: number): Piece {
  const character = text[at]!;
  if (character === "'" || character === '"') return readQuoted(text, at, character);
  if (character === '\\') {
    const escaped = text[at + 1] ?? '';
    return { text: escaped, end: at + 2, isCertain: escaped !== '' && escaped !== '\n' };
  }
  // Control characters and Unicode spaces: shells and users may read them differently.
  return {
    text: character,
    end: at + 1,
    isCertain: !UNCERTAIN.has(character) && !/[\p{Cc}\p{Cf}]|(?! )\p{Z}/u.test(character),
  };
}

function readQuoted(text: string, at: number, quote: string): Piece {
  const end = text.indexOf(quote, at + 1);
  const inside = text.slice(at + 1, end === -1 ? text.length : end);
  const isPlain = quote === "'" || !/[$`\\!]/.test(inside);
  return { text: inside, end: end === -1 ? text.length : end + 1, isCertain: end !== -1 && isPlain };
}

function isPlainCommand([name = '']: readonly string[]): boolean {
  return !ASSIGNMENT.test(name) && !KEYWORDS.has(name);
}
