import { basename } from 'node:path';

/** A command line, parsed to the extent possible without a shell. */
export interface CommandLine {
  /** The words of each command, if they could be parsed. */
  readonly commands: readonly (readonly string[])[];
  /** Whether a shell runs exactly these words: no expansion, glob, redirection, assignment, grouping or keyword. */
  readonly isCertain: boolean;
}

/** Blanks, a separator of commands, or a word. A quote or backslash that nothing follows is a word too. */
const TOKEN = /[ \t]+|(\|\||&&|\|&|;;|[;|&\n])|((?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^ \t;|&\n'"\\])+|.)/gs;
const QUOTED = /'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)/gs;
/** A word that is quoted as a whole or not at all, with nothing in it that a shell or a reader could take for something else. */
const PLAIN_WORD = /^(?:'[^']*'|"[^"$`\\!]*"|[\p{L}\p{N}_@%+=:,./~^-]+)$/u;
const ASSIGNMENT = /^[A-Za-z_]\w*(?:\[.*\])?\+?=/;
const KEYWORDS = new Set(
  'if then elif else fi for while until do done case esac select function time coproc eval exec source . alias'.split(
    ' ',
  ),
);
/** Programs that run a command which their words, or what they read, contain. */
const WRAPPERS = new Set(
  'sh bash dash zsh ksh ash fish csh tcsh busybox env sudo doas su runuser command builtin timeout nohup nice ionice chrt setsid stdbuf xargs parallel watch script flock chroot unshare nsenter setpriv ssh'.split(
    ' ',
  ),
);

/** Parses the commands of a command line. It understands words, quotes and separators; all else makes the result uncertain. */
export function readCommandLine(text: string): CommandLine {
  const commands: string[][] = [[]];
  let isCertain = !text.includes('\\\n');
  for (const [, separator, word] of text.replaceAll('\\\n', '').matchAll(TOKEN)) {
    if (separator !== undefined) commands.push([]);
    if (word === undefined) continue;
    isCertain &&= PLAIN_WORD.test(word);
    commands.at(-1)!.push(word.replace(QUOTED, '$1$2$3'));
  }
  const filled = commands.filter(({ length }) => length > 0);
  return { commands: filled, isCertain: isCertain && filled.every(isPlainCommand) };
}

function isPlainCommand([name = '']: readonly string[]): boolean {
  return !ASSIGNMENT.test(name) && !KEYWORDS.has(name);
}

export function isWrapper(name: string): boolean {
  return WRAPPERS.has(basename(name));
}
